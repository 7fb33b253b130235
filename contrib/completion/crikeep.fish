# SPDX-License-Identifier: Apache-2.0
#
# fish completion for crikeep(1) and crikeepd(8), by the file for bash: install this one as
# /usr/share/fish/vendor_completions.d/crikeep.fish, with a link crikeepd.fish beside it

set -g __crikeep_bash (status dirname)/../../bash-completion/completions/crikeep

function __crikeep_replies
    bash $__crikeep_bash (commandline -opc) (commandline -ct) 2>/dev/null
end

complete -c crikeep -f -a '(__crikeep_replies)'
complete -c crikeepd -f -a '(__crikeep_replies)'
