# SPDX-License-Identifier: Apache-2.0
# Shares variables and functions with those who source it.
# shellcheck shell=bash disable=SC2034,SC2154
#
# For scripts to source after prelude.sh: a database in $dir, where crikeep looks, made by make-db.

make_db=$build/tests/prog/make-db dir=$work/state owner=''
export CRIKEEP_STATE_DIR=$dir CK_TEST_DATA=${CK_TEST_DATA:-$src/tests/data}

# db SCENE [hold|stuck|serve]: a fresh one, whose owner lives, or is gone
db() {
	end owner
	rm -rf "$dir"
	if [ $# = 1 ]; then
		"$make_db" "$dir" "$1" || exit 99
		return
	fi
	rm -f "$work/ready"
	mkfifo "$work/ready"
	"$make_db" "$dir" "$@" >"$work/ready" &
	owner=$!
	read -r _ <"$work/ready" || exit 99
}
