#!/bin/sh
# Exit 0 if a Java 17 or newer is there, else print one line that says what to install, and exit 1.
# The same rule in Python, for programs: headwater/common/machine/java.py.
set -u
wanted=17
hint="Install e.g. openjdk-$wanted-jre-headless and set JAVA_HOME"

if [ -n "${JAVA_HOME:-}" ]; then
  java="$JAVA_HOME/bin/java"
  [ -x "$java" ] || { echo "headwater needs Java $wanted or newer: JAVA_HOME is '$JAVA_HOME', which has no bin/java. $hint" >&2; exit 1; }
else
  java=$(command -v java) || { echo "headwater needs Java $wanted or newer: found none. $hint" >&2; exit 1; }
fi

# `openjdk version "17.0.15" 2025-04-15`, `java version "1.8.0_392"`; other lines may come before it.
version=$("$java" -version 2>&1 | sed -n 's/^.* version "\([^"]*\)".*$/\1/p' | head -n 1)
major=$(printf '%s\n' "$version" | sed -e 's/^1\.//' -e 's/[^0-9].*$//')
if [ -z "$major" ]; then
  echo "headwater needs Java $wanted or newer: '$java -version' names no version. $hint" >&2
  exit 1
fi
if [ "$major" -lt "$wanted" ]; then
  echo "headwater needs Java $wanted or newer: found $version at $java. $hint" >&2
  exit 1
fi
