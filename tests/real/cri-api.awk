# SPDX-License-Identifier: Apache-2.0
#
# What an api.proto of cri-api says, a line each: its methods (service/method, request, response,
# "stream" where the server streams), then its fields (message.field, number, type, "repeated"; the
# type of a map is "map") and the values of its enumerations (enumeration.name, number).
{ sub(/[ \t]*\/\/.*/, ""); sub(/\[[^]]*\]/, ""); sub(/{/, " {") }
$1 == "service" { service = $2 }
$1 == "rpc" {
	gsub(/[();{}]/, " ")
	streams = $5 == "stream"
	print service "/" $2 " " $3 " " $(streams ? 6 : 5) (streams ? " stream" : "")
	next
}
$1 == "message" { message = $2 }
$1 == "enum" { enumeration = $2 }
/=.*;/ && (message != "" || enumeration != "") {
	sub(/map<[^>]*>/, "map")
	repeated = sub(/^[ \t]*repeated /, "")
	sub(/[ \t]*;.*/, "")
	gsub(/=/, " ")
	if (enumeration != "")
		print enumeration "." $1 " " $2
	else
		print message "." $2 " " $3 " " $1 (repeated ? " repeated" : "")
}
/}/ { enumeration = "" }
