import { describe, expect, it } from 'vitest'
import { documentOf, emptyDraft, mergeHosts, missingIn, parseHosts, proposedEtcd } from '../../src/lib/draft'

const host = (name: string, address: string, port: number | null, user: string | null) =>
  ({ name, address, port, user, algorithm: null, fingerprint: null, problem: null, confirmed: false })

describe('pasted hosts', () => {
  it('are lines or CSV, with or without user and port', () => {
    expect(parseHosts('name,address,user\na,10.0.0.1,root\n\n# two more\nb 10.0.0.2:2222 ops\r\nc [2001:db8::1]:22\nd 2001:db8::2 root\n').hosts).toEqual([
      host('a', '10.0.0.1', null, 'root'), host('b', '10.0.0.2', 2222, 'ops'), host('c', '2001:db8::1', 22, null), host('d', '2001:db8::2', null, 'root'),
    ])
  })

  it('that are none are named by their lines', () => {
    const text = 'a\na 10.0.0.1\na 10.0.0.2\nB 10.0.0.3\nc 10.0.0.4:0\nd 10.0.0.5 root more\ne $(id)\nf 10.0.0.6 "root"'
    const { hosts, wrong } = parseHosts(text)
    expect(hosts.map(({ name }) => name)).toEqual(['a'])
    expect(wrong.map(({ line }) => line)).toEqual([1, 3, 4, 5, 6, 7, 8])
  })

  it('keep their key only as long as their address is the same', () => {
    const before = [{ ...host('a', '10.0.0.1', null, 'root'), fingerprint: 'SHA256:x', confirmed: true }]
    expect(mergeHosts(before, [host('a', '10.0.0.1', null, 'ops')])[0]).toMatchObject({ fingerprint: 'SHA256:x', confirmed: true, user: 'ops' })
    expect(mergeHosts(before, [host('a', '10.0.0.2', null, 'ops')])[0]).toMatchObject({ fingerprint: null, confirmed: false })
    expect(mergeHosts(before, [host('a', '10.0.0.1', 2222, null)])[0]).toMatchObject({ fingerprint: null, confirmed: false })
  })
})

it('an odd number of members of etcd is proposed', () => {
  expect([1, 2, 3, 4, 5, 6, 9].map((n) => proposedEtcd([...'abcdefghi'].slice(0, n)).length)).toEqual([1, 1, 3, 3, 5, 5, 5])
})

it('a document names secrets, and has only keys that were confirmed', () => {
  const draft = {
    ...emptyDraft(), name: 'prod', bundle: 'karmada', controlPlane: ['a'], etcd: ['a'],
    login: { name: 'login', key: 'ssh-privatekey', fingerprint: null }, sudo: { name: 'sudo', key: 'password', fingerprint: null },
    hosts: [
      { ...host('a', '10.0.0.1', 22, 'root'), fingerprint: 'SHA256:x', confirmed: true },
      { ...host('b', '10.0.0.2', null, null), fingerprint: 'SHA256:y' },
    ],
  }
  expect(documentOf(draft)).toBe(`apiVersion: windlass.dev/v1alpha1
kind: KarmadaDeployment
metadata:
  name: prod
spec:
  bundle: "karmada"
  hosts:
    - {name: a, address: "10.0.0.1", port: 22, user: "root", fingerprint: "SHA256:x"}
    - {name: b, address: "10.0.0.2"}
  ssh:
    privateKey: {secret: {name: login, key: ssh-privatekey}}
    becomePassword: {secret: {name: sudo, key: password}}
    hostKeys: strict
  controlPlane:
    hosts: [a]
  etcd:
    managed:
      hosts: [a]
`)
  expect(missingIn('hosts', { ...draft, pasted: 'a 10.0.0.1\nb 10.0.0.2' })).toBe('new.needsConfirmed')
})
