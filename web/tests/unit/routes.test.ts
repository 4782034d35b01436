import { describe, expect, it } from 'vitest'
import { attention, byAttention, certificates, changesByHost, countKinds, deploymentState, sameNames, typedNames } from '../../src/lib/deployments'
import { href, parseRoute } from '../../src/lib/router.svelte'

describe('routes', () => {
  it('are in the fragment', () => {
    expect(href(['runs', 'a b/c'], { host: 'h&1', task: 0, view: null })).toBe('#/runs/a%20b%2Fc?host=h%261&task=0')
    const route = parseRoute('#/runs/a%20b%2Fc?host=h%261&task=0')
    expect(route.path).toEqual(['runs', 'a b/c'])
    expect(Object.fromEntries(route.query)).toEqual({ host: 'h&1', task: '0' })
    expect(parseRoute('').path).toEqual([])
    expect(parseRoute('#/%').path).toEqual(['%'])
  })
})

describe('deployments', () => {
  const deployment = { name: 'a', file: 'a.yaml', problem: null, version: null, hosts: [], etcd_hosts: [], members: [], last_run: null, running: [], status: null }
  const status = { time: '', healthy: true, wrong: [], run: '' }
  it('that need attention are known', () => {
    const all = [deployment, { ...deployment, status }, { ...deployment, status: { ...status, healthy: false } }, { ...deployment, problem: 'x' }]
    expect(all.map(attention)).toEqual([1, 2, 0, 0])
    expect(all.map(deploymentState)).toEqual(['unknown', 'healthy', 'unhealthy', 'unreadable'])
  })
  it('that are unhealthy come first, and those that are not known before those that are well', () => {
    const failedLook = { ...status, healthy: false, wrong: ['the last look at the hosts reached none of them'] }
    const all = [
      { ...deployment, name: 'c', status }, { ...deployment, name: 'a', status }, { ...deployment, name: 'd' }, { ...deployment, name: 'b', problem: 'x' },
      { ...deployment, name: 'e', status: failedLook },
    ]
    expect(all.sort(byAttention).map((item) => item.name)).toEqual(['e', 'b', 'd', 'a', 'c'])
  })
  it('have certificates, the next to end first', () => {
    const component = { component: 'api', host: 'h1', state: '', ready: true, why: '', leads: false, version: '', port: 1 }
    const found = certificates({
      deployment: 'a', healthy: true, wrong: [], members: [], unreachable: {}, unfinished: null, running: null,
      etcd: [{ host: 'h1', version: '', role: '', db_size: 0, alarms: [], healthy: true, why: '', port: 1, not_after: '', days_left: 30 }],
      components: [{ ...component, days_left: 7 }, { ...component, host: 'h2', days_left: '?' }],
    })
    expect(found.map(({ host, days }) => [host, days])).toEqual([['h2', null], ['h1', 7], ['h1', 30]])
  })
})

describe('plans', () => {
  it('show changes by host', () => {
    const change = (host: string, kind: string) => ({ host, kind, what: 'w', task: 't' })
    const found = changesByHost({
      stage: 'etcd', state: 'differs', hosts: ['h1', 'h2'],
      found: {
        changes: [change('h2', 'file'), change('h1', 'file'), change('h1', 'unit'), change('h1', 'file')], failures: [], waits: [], notes: [],
        services: [{ host: 'h3', unit: 'etcd', action: 'restart', clients: 'unaffected' }],
      },
    })
    expect(found.map(({ host, changes, services }) => [host, changes.length, services.length])).toEqual([['h1', 3, 0], ['h2', 1, 0], ['h3', 0, 1]])
    expect(countKinds(found[0]!.changes)).toEqual([['file', 2], ['unit', 1]])
  })
  it('ask for the names of the members that leave', () => {
    expect(sameNames(typedNames(' m2, m1\n'), ['m1', 'm2'])).toBe(true)
    expect(sameNames(typedNames('m1'), ['m1', 'm2'])).toBe(false)
    expect(sameNames(typedNames(''), [])).toBe(true)
  })
})
