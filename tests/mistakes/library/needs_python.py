#!/usr/bin/python3
from ansible.module_utils.basic import AnsibleModule
