# SPDX-License-Identifier: Apache-2.0
# Macros of crikeep's own. serial 1

# CK_CC_FLAG(VARIABLE, FLAGS...) - append each flag that the compiler accepts to VARIABLE. With
# -Werror, because clang only warns about a -W option it does not know.
AC_DEFUN([CK_CC_FLAG], [m4_foreach_w([ck_flag], [$2], [
	AS_VAR_PUSHDEF([ck_var], [ck_cv_cc_[]ck_flag])
	AC_CACHE_CHECK([whether $CC accepts ck_flag], [ck_var], [
		ck_save=$CFLAGS
		CFLAGS="$CFLAGS -Werror ck_flag"
		AC_COMPILE_IFELSE([AC_LANG_PROGRAM],
			[AS_VAR_SET([ck_var], [yes])], [AS_VAR_SET([ck_var], [no])])
		CFLAGS=$ck_save])
	AS_VAR_IF([ck_var], [yes], [AS_VAR_APPEND([$1], [" ck_flag"])])
	AS_VAR_POPDEF([ck_var])])])

# CK_LD_FLAG(VARIABLE, FLAGS...) - the same for the linker
AC_DEFUN([CK_LD_FLAG], [m4_foreach_w([ck_flag], [$2], [
	AS_VAR_PUSHDEF([ck_var], [ck_cv_ld_[]ck_flag])
	AC_CACHE_CHECK([whether the linker accepts ck_flag], [ck_var], [
		ck_save=$LDFLAGS
		LDFLAGS="$LDFLAGS ck_flag"
		AC_LINK_IFELSE([AC_LANG_PROGRAM],
			[AS_VAR_SET([ck_var], [yes])], [AS_VAR_SET([ck_var], [no])])
		LDFLAGS=$ck_save])
	AS_VAR_IF([ck_var], [yes], [AS_VAR_APPEND([$1], [" ck_flag"])])
	AS_VAR_POPDEF([ck_var])])])

# CK_PKG(VARIABLE, MODULE, DEBIAN PACKAGE) - a library by pkg-config. What is missing is gathered in
# $ck_missing, so that one run of configure names everything at once.
AC_DEFUN([CK_PKG], [PKG_CHECK_MODULES([$1], [$2], [:], [AS_VAR_APPEND([ck_missing], ["
  $2 (Debian: $3)"])])])
