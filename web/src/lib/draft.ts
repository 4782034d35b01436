/** A new deployment before it is stored: what a person typed, as hosts and as a document. */

export interface DraftHost {
  name: string; address: string; port: number | null; user: string | null
  /** What the host showed. */
  algorithm: string | null; fingerprint: string | null; problem: string | null
  /** A person has compared it. */
  confirmed: boolean
}
/** A secret that was written to the server's store. */
export interface DraftSecret { name: string; key: string; fingerprint: string | null }
export interface DraftValues {
  name: string; pasted: string; hosts: DraftHost[]
  login: DraftSecret | null; passphrase: DraftSecret | null; sudo: DraftSecret | null
  controlPlane: string[]; etcd: string[]; loadBalancer: string[]
  bundle: string; version: string; endpoint: string; virtualAddress: string
  /** The document, if a person has changed it by hand. */
  written: string | null
}

export const STEPS = ['name', 'hosts', 'access', 'roles', 'options', 'check'] as const
export type Step = (typeof STEPS)[number]

export const emptyDraft = (): DraftValues => ({
  name: '', pasted: '', hosts: [], login: null, passphrase: null, sudo: null, controlPlane: [], etcd: [], loadBalancer: [],
  bundle: '', version: '', endpoint: '', virtualAddress: '', written: null,
})

export const isName = (text: string) => /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(text)

/** `10.0.0.1`, `10.0.0.1:2222`, `[2001:db8::1]:22`, `2001:db8::1`. */
function addressOf(text: string): { address: string; port: number | null } | null {
  const [, bracketed, plain, port] = /^(?:\[([^\]\s]+)\]|([^\s:]+|[^\s:]*:[^\s:]*:[^\s]*))(?::(\d{1,5}))?$/.exec(text) ?? []
  const address = bracketed ?? plain
  if (!address || !/^[\w.:%-]+$/.test(address) || (port && !(Number(port) > 0 && Number(port) < 65536))) return null
  return { address, port: port ? Number(port) : null }
}

/** Lines of `name address user` or `name,address,user`; the user may be missing. A line with the names of the columns counts for none. */
export function parseHosts(text: string): { hosts: DraftHost[]; wrong: { line: number; text: string }[] } {
  const hosts: DraftHost[] = []
  const wrong: { line: number; text: string }[] = []
  text.split('\n').forEach((line, at) => {
    const words = line.replace(/#.*/, '').split(/[\s,;]+/).filter(Boolean)
    if (!words.length || (at === 0 && words[0]!.toLowerCase() === 'name')) return
    const [name, place, user = null, ...more] = words
    const found = place === undefined ? null : addressOf(place)
    const isGood = isName(name!) && found && (user === null || /^[\w.-]+$/.test(user)) && !more.length && !hosts.some((host) => host.name === name)
    if (isGood) hosts.push({ name: name!, ...found, user, algorithm: null, fingerprint: null, problem: null, confirmed: false })
    else wrong.push({ line: at + 1, text: line.trim() })
  })
  return { hosts, wrong }
}

/** The hosts as they are pasted now, with what is known of those that have not changed. */
export function mergeHosts(before: DraftHost[], now: DraftHost[]): DraftHost[] {
  return now.map((host) => {
    const known = before.find((one) => one.name === host.name && one.address === host.address && one.port === host.port)
    return known ? { ...known, user: host.user } : host
  })
}

/** At most five and an odd number: more members of etcd are slower and hardly safer. */
export const proposedEtcd = (names: string[]) => names.slice(0, Math.min(5, names.length - (names.length % 2 === 0 ? 1 : 0)))

const quoted = (text: string) => JSON.stringify(text)
const list = (names: string[]) => `[${names.join(', ')}]`
const reference = ({ name, key }: DraftSecret) => `{secret: {name: ${name}, key: ${key}}}`

/** The document of what was typed. */
export function documentOf(draft: DraftValues): string {
  const lines = ['apiVersion: windlass.dev/v1alpha1', 'kind: KarmadaDeployment', 'metadata:', `  name: ${draft.name}`, 'spec:', `  bundle: ${quoted(draft.bundle)}`]
  if (draft.version) lines.push(`  version: ${quoted(draft.version)}`)
  lines.push('  hosts:')
  for (const host of draft.hosts) {
    const fields = [`name: ${host.name}`, `address: ${quoted(host.address)}`]
    if (host.port !== null) fields.push(`port: ${host.port}`)
    if (host.user !== null) fields.push(`user: ${quoted(host.user)}`)
    if (host.confirmed && host.fingerprint) fields.push(`fingerprint: ${quoted(host.fingerprint)}`)
    lines.push(`    - {${fields.join(', ')}}`)
  }
  lines.push('  ssh:')
  const { login, passphrase, sudo } = draft
  if (login) lines.push(`    ${login.key === 'password' ? 'password' : 'privateKey'}: ${reference(login)}`)
  if (passphrase) lines.push(`    passphrase: ${reference(passphrase)}`)
  if (sudo) lines.push(`    becomePassword: ${reference(sudo)}`)
  lines.push('    hostKeys: strict', '  controlPlane:', `    hosts: ${list(draft.controlPlane)}`)
  if (draft.endpoint) lines.push(`    endpoint: ${quoted(draft.endpoint)}`)
  if (draft.virtualAddress) lines.push('    loadBalancer:', `      hosts: ${list(draft.loadBalancer)}`, `      virtualAddress: ${quoted(draft.virtualAddress)}`)
  lines.push('  etcd:', '    managed:', `      hosts: ${list(draft.etcd)}`)
  return `${lines.join('\n')}\n`
}

/** What is to be done before the next step, as the key of a text; null: nothing. */
export function missingIn(step: Step, draft: DraftValues) {
  switch (step) {
    case 'name': return !draft.name ? 'new.needsName' : !isName(draft.name) ? 'new.badName' : null
    case 'hosts':
      return !draft.hosts.length ? 'new.needsHosts' : parseHosts(draft.pasted).wrong.length ? 'new.wrongLines'
        : draft.hosts.some((host) => !host.fingerprint) ? 'new.needsKeys' : draft.hosts.some((host) => !host.confirmed) ? 'new.needsConfirmed' : null
    case 'access': return draft.login ? null : 'new.needsAccess'
    case 'roles': return !draft.controlPlane.length ? 'new.needsControlPlane' : !draft.etcd.length ? 'new.needsEtcd' : null
    case 'options': return draft.written === null && !draft.bundle ? 'new.needsBundle' : null
    case 'check': return null
  }
}
