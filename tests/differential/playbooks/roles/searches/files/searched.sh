#!/bin/sh
echo from the script
