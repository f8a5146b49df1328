#!/bin/sh
# dist.sh VERSION: static binaries, a deb, an rpm and their checksums, in dist/. Run in
# the repository's root; bin/nfpm is built. The same commit gives the same bytes.
set -eu
version=$1
# A package's version begins with a digit and has no '-'.
case $version in
v[0-9]*) packaged=${version#v} ;;
[0-9]*.[0-9]*) packaged=$version ;;
*) packaged=0.0.0+$version ;;
esac
packaged=$(echo "$packaged" | tr - .)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH CGO_ENABLED=0 GOFLAGS=-buildvcs=false
rm -rf dist
mkdir -p dist/.built
built=dist/.built

build() { # OS ARCH FILE
	GOOS=$1 GOARCH=$2 go build -trimpath -ldflags "-s -w -X decree/cmd.version=$version" -o "$3" ./cmd/decree
}

go build -o $built/host ./cmd/decree
$built/host man | gzip -9n >$built/decree.1.gz
for shell in bash zsh fish; do $built/host completion $shell >$built/$shell; done

for target in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64; do
	os=${target%/*} arch=${target#*/}
	name=decree-$packaged-$os-$arch
	mkdir -p $built/$name
	build "$os" "$arch" $built/$name/decree
	cp README.md LICENSE CHANGELOG.md $built/decree.1.gz $built/$name/
	mkdir $built/$name/completion
	cp $built/bash $built/zsh $built/fish $built/$name/completion/
	tar -C $built --sort=name --mtime=@$SOURCE_DATE_EPOCH --owner=0 --group=0 --numeric-owner -cf - $name | gzip -9n >dist/$name.tar.gz
	if [ "$os" = linux ]; then
		cp $built/$name/decree $built/decree
		for kind in deb rpm; do
			VERSION=$packaged ARCH=$arch bin/nfpm package -f tools/dist/nfpm.yaml -p $kind -t dist/
		done
	fi
done
rm -rf $built
cd dist
sha256sum -- * >SHA256SUMS
ls -l
