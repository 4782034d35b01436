/** What the lists of deployments and of their parts show first. */

import type { Days, Deployment, DeploymentStatus, PlannedStage } from '../api'

export const deploymentState = (item: Deployment): string =>
  item.problem !== null ? 'unreadable' : item.status === null ? 'unknown' : item.status.healthy ? 'healthy' : 'unhealthy'

/** 0: needs attention. 1: not known. 2: well. */
export const attention = (item: Deployment): 0 | 1 | 2 =>
  item.problem !== null || item.status?.healthy === false ? 0 : item.status === null ? 1 : 2

/** Unhealthy ones first, then invalid files, then those that are not known. */
export const byAttention = (a: Deployment, b: Deployment): number =>
  attention(a) - attention(b) || Number(a.problem !== null) - Number(b.problem !== null) || a.name.localeCompare(b.name)

export interface Certificate { component: string; host: string; days: number | null }

/** The certificates, those that end first in front; those that are not known before them. */
export function certificates(status: DeploymentStatus): Certificate[] {
  const days = (value: Days) => (typeof value === 'number' ? value : null)
  return [
    ...status.etcd.map((row) => ({ component: 'etcd', host: row.host, days: days(row.days_left) })),
    ...status.components.map((row) => ({ component: row.component, host: row.host, days: days(row.days_left) })),
  ].sort((a, b) => (a.days ?? -Infinity) - (b.days ?? -Infinity) || a.component.localeCompare(b.component) || a.host.localeCompare(b.host))
}

/** The changes of a stage by host; hosts in the order of their names. */
export function changesByHost(stage: PlannedStage) {
  const hosts = new Map<string, { changes: typeof stage.found.changes; services: typeof stage.found.services }>()
  const of = (host: string) => {
    if (!hosts.has(host)) hosts.set(host, { changes: [], services: [] })
    return hosts.get(host)!
  }
  stage.found.changes.forEach((change) => of(change.host).changes.push(change))
  stage.found.services.forEach((service) => of(service.host).services.push(service))
  return [...hosts].map(([host, found]) => ({ host, ...found })).sort((a, b) => a.host.localeCompare(b.host))
}

/** How many changes of each kind. */
export function countKinds(changes: { kind: string }[]): [string, number][] {
  const counts = new Map<string, number>()
  for (const { kind } of changes) counts.set(kind, (counts.get(kind) ?? 0) + 1)
  return [...counts]
}

/** Whether a person typed exactly these names, in any order, separated by spaces, commas or new lines. */
export function typedNames(text: string): string[] {
  return text.split(/[\s,]+/).filter(Boolean)
}
export const sameNames = (a: string[], b: string[]) => [...a].sort().join('\n') === [...b].sort().join('\n')
