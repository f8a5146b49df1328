//go:build unix

package cmd

// realAgent is how a real client is run without a person and with the scripted model. Its package is below
// $DECREE_AGENTS/NAME, where `make agents` installs it.
type realAgent struct {
	name string
	// files are what it needs below the home; @URL@ in them is the model's, @MCP@ is mcp where decree serves it, else nothing.
	// A file that has nothing but @MCP@ is not there without.
	files map[string]string
	mcp   string // as docs/guide-agents.md has it, but for --allow-write; "": it speaks no MCP
	env   []string
	setup []string // a command of it that comes before all others
	line  []string // the program and its flags; the prompt follows
	// resume are the words, instead of those, that go on with a conversation; @SESSION@ in them is its id.
	resume []string
	// secretive: its hooks do not say what the prompt is.
	secretive bool
	acp       []string // what has it speak the Agent Client Protocol; nil: it was not tried
	// cannot has the stories that it cannot be in, and why.
	cannot map[string]string
}

const sessionID = "@SESSION@"

var realAgents = []realAgent{
	{
		name: "codex",
		files: map[string]string{".codex/config.toml": `model = "gpt-5.5"
model_provider = "fake"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[analytics]
enabled = false
[features]
apps = false
plugins = false
[model_providers.fake]
name = "fake"
base_url = "@URL@/v1"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 0
@MCP@
`},
		mcp: `[mcp_servers.decree]
command = "decree"
args = ["mcp", "--allow-write"]
`,
		line:   []string{"codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust"},
		resume: []string{"codex", "exec", "resume", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", sessionID},
	},
	{
		name:   "gemini",
		files:  map[string]string{".gemini/settings.json": `{"security": {"auth": {"selectedType": "gemini-api-key"}}, "telemetry": {"enabled": false}, @MCP@ "privacy": {"usageStatisticsEnabled": false}, "general": {"enableAutoUpdate": false}}`},
		mcp:    `"mcpServers": {"decree": {"command": "decree", "args": ["mcp", "--allow-write"]}},`,
		env:    []string{"GEMINI_API_KEY=fake", "GOOGLE_GEMINI_BASE_URL=@URL@", "GEMINI_CLI_NO_RELAUNCH=true"},
		line:   []string{"gemini", "--skip-trust", "--yolo", "-m", "gemini-2.5-pro", "-p"},
		resume: []string{"gemini", "--resume", sessionID, "--skip-trust", "--yolo", "-m", "gemini-2.5-pro", "-p"},
		acp:    []string{"--acp", "--skip-trust", "--yolo", "-m", "gemini-2.5-pro"},
	},
	{
		name:   "qwen",
		files:  map[string]string{".qwen/settings.json": `{"security": {"auth": {"selectedType": "openai"}}, "telemetry": {"enabled": false}, @MCP@ "tools": {"toolSearch": {"enabled": false}}, "privacy": {"usageStatisticsEnabled": false}, "general": {"enableAutoUpdate": false}}`},
		mcp:    `"mcpServers": {"decree": {"command": "decree", "args": ["mcp", "--allow-write"]}},`,
		env:    []string{"OPENAI_API_KEY=fake", "OPENAI_BASE_URL=@URL@/v1", "OPENAI_MODEL=fake"},
		line:   []string{"qwen", "--yolo", "-p"},
		resume: []string{"qwen", "--resume", sessionID, "--yolo", "-p"},
		cannot: map[string]string{"acp": "it says of a prompt that was cancelled that it has answered"},
	},
	{
		name:   "copilot",
		files:  map[string]string{".copilot/mcp-config.json": "@MCP@"},
		mcp:    `{"mcpServers": {"decree": {"type": "local", "command": "decree", "args": ["mcp", "--allow-write"], "tools": ["*"]}}}`,
		env:    []string{"COPILOT_OFFLINE=true", "COPILOT_AUTO_UPDATE=false", "COPILOT_PROVIDER_BASE_URL=@URL@/v1", "COPILOT_PROVIDER_API_KEY=fake", "COPILOT_MODEL=fake"},
		line:   []string{"copilot", "--no-color", "--allow-all-tools", "--allow-all-paths", "-p"},
		resume: []string{"copilot", "--no-color", "--allow-all-tools", "--allow-all-paths", "--resume=" + sessionID, "-p"},
		acp:    []string{"--acp", "--allow-all-tools", "--allow-all-paths"},
		cannot: map[string]string{"resume after SIGKILL": "it knows no session that was killed"},
	},
	{
		name:   "pi",
		files:  map[string]string{".pi/agent/models.json": `{"providers": {"fake": {"baseUrl": "@URL@/v1", "api": "openai-completions", "apiKey": "fake", "models": [{"id": "fake"}]}}}`},
		env:    []string{"PI_OFFLINE=1", "PI_TELEMETRY=0"},
		line:   []string{"pi", "--offline", "--provider", "fake", "--model", "fake", "-p"},
		resume: []string{"pi", "--offline", "--provider", "fake", "--model", "fake", "--session", sessionID, "-p"},
	},
	{
		name: "opencode",
		files: map[string]string{".config/opencode/opencode.json": `{"model": "fake/fake", "small_model": "fake/fake", "autoupdate": false, "share": "disabled", "enabled_providers": ["fake"], @MCP@
 "provider": {"fake": {"npm": "@ai-sdk/openai-compatible", "name": "fake", "options": {"baseURL": "@URL@/v1", "apiKey": "fake"}, "models": {"fake": {"name": "fake", "tool_call": true, "limit": {"context": 200000, "output": 8000}}}}},
 "permission": {"edit": "allow", "bash": "allow", "external_directory": "allow"}}`},
		mcp:    `"mcp": {"decree": {"type": "local", "command": ["decree", "mcp", "--allow-write"], "enabled": true}},`,
		env:    []string{"npm_config_fetch_retries=0", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1"},
		line:   []string{"opencode", "run"},
		resume: []string{"opencode", "run", "--session", sessionID},
		acp:    []string{"acp"},
	},
	{
		name:      "cline",
		files:     map[string]string{".cline/data/settings/cline_mcp_settings.json": "@MCP@"},
		mcp:       `{"mcpServers": {"decree": {"command": "decree", "args": ["mcp", "--allow-write"], "disabled": false}}}`,
		env:       []string{"CLINE_TELEMETRY_DISABLED=1", "CLINE_NO_AUTO_UPDATE=1"},
		setup:     []string{"cline", "auth", "-p", "openai-compatible", "-k", "fake", "-m", "fake", "-b", "@URL@/v1"},
		line:      []string{"cline", "--timeout", "120"},
		resume:    []string{"cline", "--timeout", "120", "--id", sessionID},
		secretive: true,
		cannot:    map[string]string{"acp": "it wants its user to log in", "resume": "it goes on with a session in a terminal alone", "resume after SIGKILL": "it goes on with a session in a terminal alone"},
	},
}
