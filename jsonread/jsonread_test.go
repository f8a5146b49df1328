package jsonread

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Members come in their order with their raw text, and values as they stand.
func TestObject(t *testing.T) {
	var names, raw []string
	text := []byte(` {"b":"x\u00e9\n", "a": {"n":[1, -2]}, "c":null,"\u0064":[] , "e":true} ` + "\n")
	require.NoError(t, Object(text, func(name string, v *Value) error {
		names, raw = append(names, name), append(raw, string(v.Raw()))
		switch name {
		case "b":
			assert.Equal(t, "xé\n", v.Text())
		case "a":
			v.Members(func(name string, m *Value) {
				assert.Equal(t, "n", name)
				var got []int64
				m.Array(func(e *Value) { got = append(got, e.Int()) })
				assert.Equal(t, []int64{1, -2}, got)
			})
		case "c":
			assert.Zero(t, v.Int())
			assert.Empty(t, v.Text())
			assert.False(t, v.Bool())
		case "d":
			assert.Equal(t, []string{}, v.Texts())
		case "e":
			assert.True(t, v.Bool())
		}
		return v.Err()
	}))
	assert.Equal(t, []string{"b", "a", "c", "d", "e"}, names)
	assert.Equal(t, []string{`"x\u00e9\n"`, `{"n":[1, -2]}`, "null", "[]", "true"}, raw)
}

// What two readers could understand differently is refused, nested as well.
func TestObjectRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"name twice": `{"a":1,"a":2}`, "name twice in another spelling": `{"a":1,"\u0061":2}`, "nested name twice": `{"x":{"a":1,"a":2}}`,
		"no UTF-8": "{\"a\":\"\xff\"}", "half a surrogate pair": `{"a":"\ud800"}`, "cut short": `{"a":1`, "nothing": "",
		"no object": `[1]`, "a second value": `{} {}`, "comma at the end": `{"a":1,}`, "a comment": `{"a":1} // x`,
	} {
		assert.Error(t, Object([]byte(text), func(string, *Value) error { return nil }), name)
	}
}

// A value of another kind is a fault that names its member.
func TestFaults(t *testing.T) {
	for text, says := range map[string]string{
		`{"n":"1"}`: "n: expected a whole number", `{"n":1.5}`: "n: expected a whole number", `{"n":9223372036854775808}`: "n: expected a whole number",
		`{"t":1}`: "t: expected a string", `{"b":"true"}`: "b: expected true or false", `{"l":{}}`: "l: expected a list",
	} {
		err := Object([]byte(text), func(name string, v *Value) error {
			switch name {
			case "n":
				v.Int()
			case "t":
				_ = v.Text()
			case "b":
				v.Bool()
			case "l":
				v.Array(func(*Value) {})
			}
			return nil
		})
		assert.EqualError(t, err, says)
	}
}

// What is taken reads as encoding/json reads it.
func FuzzObject(f *testing.F) {
	f.Add([]byte(`{"a":"b","c":["d",1,{"e":null}],"f":-0.5}`))
	f.Add([]byte(`{"a":"b\u0000","":""}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got := map[string]any{}
		err := Object(data, func(name string, v *Value) error {
			var x any
			require.NoError(t, json.Unmarshal(v.Raw(), &x))
			if s, ok := x.(string); ok {
				require.Equal(t, s, v.Text())
			}
			got[name] = x
			return nil
		})
		if err != nil {
			return
		}
		var want map[string]any
		require.NoError(t, json.Unmarshal(bytes.Clone(data), &want))
		require.Equal(t, want, got)
	})
}
