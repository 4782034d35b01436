/** The API of `windlass serve`, version 1. */

import { stored } from './lib/stored'

export type Right = 'see' | 'plan' | 'edit' | 'approve' | 'stop' | 'destroy' | 'admin'
export type Rights = Record<string, Right[]>
export interface Session { name: string; account: string | null; rights: Rights; ends: string; version: string }
export interface OpenSession {
  id: string; name: string; account: string | null; address: string; created: string; last_used: string; ends: string; current: boolean
}
/** The secret of a link, or an account. */
export type Credentials = string | { name: string; password: string }

export type Outcome = 'succeeded' | 'failed' | 'unreachable' | 'refused' | 'error' | 'interrupted'
export type Status = 'ok' | 'changed' | 'skipped' | 'ignored' | 'failed' | 'unreachable'
export type HostCounts = Record<'ok' | 'changed' | 'unreachable' | 'failed' | 'skipped' | 'rescued' | 'ignored', number>
export interface RunStage {
  stage: string; check: boolean; started: string; ended: string | null; outcome: Outcome | null; changes: number | null
}
export interface Run {
  id: string; command: string; command_line: string; user: string; pid: number; version: string; check: boolean
  started: string; deployment: string | null; stages: RunStage[]; hosts: Record<string, HostCounts>; running: boolean
  ended: string | null; outcome: Outcome | null; exit_code: number | null; complete: boolean; last_sequence: number
}

export interface CellResult { status: Status | 'running'; seconds: number | null; sequence: number; msg?: string; hint?: string }
export interface SnapshotTask extends TaskInfo {
  stage: string | null; play: string | null; started: string; seconds: number | null; results: Record<string, CellResult>
}
export interface Snapshot { run: Run; sequence: number; hosts: string[]; tasks: SnapshotTask[] }

export interface TaskInfo { id: number; name: string; role: string | null; action: string; path: string; handler: boolean }
export interface Diff { before_header?: string; after_header?: string; before?: unknown; after?: unknown; prepared?: string }
export interface TaskResult {
  status: Status; changed: boolean; seconds: number
  censored?: string; msg?: string; hint?: string; values?: Record<string, unknown>; diff?: Diff[]
}
/** An event of a run. Only the fields that the page uses; events of other kinds are ignored. */
export interface RunEvent {
  event: string; run: string; sequence: number; time: string; stage: string | null
  task?: TaskInfo; host?: string; result?: TaskResult; item?: string; delegated_to?: string | null
  play?: string; hosts?: unknown; check?: boolean; outcome?: Outcome; changes?: number | null
  exit_code?: number | null; deployment?: string | null; attempt?: number; retries_left?: number
}

export interface DeploymentSummary { time: string; healthy: boolean; wrong: string[]; run: string }
export interface Deployment {
  name: string; file: string; stored: boolean; problem: string | null; version: string | null; hosts: string[]; etcd_hosts: string[]
  members: string[]; last_run: Run | null; running: string[]; status: DeploymentSummary | null
}
export type Days = number | string
export interface EtcdRow {
  host: string; version: string; role: string; db_size: number; alarms: string[]; healthy: boolean; why: string
  port: Days; not_after: string; days_left: Days
}
export interface ComponentRow {
  component: string; host: string; state: string; ready: boolean; why: string; leads: boolean; version: string
  days_left: Days; port: Days
}
export interface MemberRow { name: string; mode: string; version: string; ready: boolean; why: string }
export interface DeploymentStatus {
  deployment: string; healthy: boolean; wrong: string[]; etcd: EtcdRow[]; components: ComponentRow[]; members: MemberRow[]
  unreachable: Record<string, string>; unfinished: string | null
  running: { command: string; by: string; since: string | number } | null
}
export interface StatusAnswer { time: string; run: string; status: DeploymentStatus }

export interface PlannedChange { host: string; kind: string; what: string; task: string; diff?: string }
export interface PlanFailure { host: string; task: string; message: string; unreachable?: boolean }
export interface PlannedService { host: string; unit: string; action: 'start' | 'restart' | 'reload' | 'stop'; clients: 'unaffected' | 'reconnect' | 'fail'; with?: string[] }
export interface PlanWait { host: string; stage: string; reason: string }
export interface PlannedStage {
  stage: string; state: 'same' | 'differs' | 'waits' | 'refused'; hosts: string[]
  found: {
    changes: PlannedChange[]; failures: PlanFailure[]; waits: PlanWait[]; services: PlannedService[]; notes: string[]
  }
}
/** What a plan is for. */
export type PlannedWork = 'apply' | 'upgrade' | 'rollback' | 'certificates' | 'etcd_defrag' | 'etcd_upgrade' | 'etcd_downgrade'
export interface Plan {
  run: string; deployment: string; operation: PlannedWork; digest: string; made: string; by: string; stages: PlannedStage[]
  removals: string[]; left_out: { host: string; why: string }[]; approvable: boolean; why_not: string | null; text: string
}

export interface Backup {
  name: string; taken: string | null; size: number | null; compressed_size: number | null; revision: number | null; keys: number | null
  etcd_version: string | null; member: string | null; compared: number | null
  verified: boolean | null; verified_at: string | null; problem: string | null
}

export interface Token { name: string; account: string | null; rights: Rights; created: string; ends: string | null; last_used: string | null }
export interface AuditEntry {
  sequence: number; time: string; who: string; from: string; action: string; target: string; detail: string; outcome: string
}

export interface Page<T> { items: T[]; next: string | null }

export interface Complaint { message: string; path: string | null; line: number | null; column: number | null; hint: string | null }
export interface Checked { valid: boolean; name: string | null; digest: string; complaints: Complaint[]; warnings: Complaint[] }
/** The text of a document, and what names exactly this text. */
export interface DocumentText { text: string; tag: string }

export type CredentialKind = 'sshKey' | 'password' | 'kubeconfig' | 'privateKey'
export interface Credential { name: string; kind: CredentialKind; key: string; fingerprint: string | null; set: string; by: string }
export interface HostKey {
  name: string; address: string; port: number | null; algorithm: string | null; fingerprint: string | null; problem: string | null
}
export interface Allowed { bundles: string[]; files: string[]; hooks: string[]; bastions: string[] }

/** A run to start. */
export type Command =
  | { command: 'status' | 'etcd_backup' | 'etcd_check' | 'etcd_verify' }
  | { command: 'destroy'; confirm: string; document: string }
  | { command: 'plan'; operation?: PlannedWork }
  | { command: 'apply'; plan: string; digest: string; removals: string[] }
  | { command: 'upgrade' | 'rollback' | 'certificates' | 'etcd_defrag' | 'etcd_upgrade' | 'etcd_downgrade'; plan: string; digest: string }

export class Problem extends Error {
  /** Of a document that cannot be stored. */
  complaints: Complaint[] = []

  constructor(
    readonly status: number, readonly code: string, detail: string, readonly hint: string | null = null,
    /** In how many seconds to try again. */
    readonly retryAfter = 0,
  ) {
    super(detail)
  }
}

/** Called when the server does not accept the session any more. */
export const onSignedOut = { call: () => {} }

const apiUrl = (path: string) => new URL(`api/v1/${path}`, document.baseURI.replace(/#.*/, '')).href

/** The half of a session that is not in its cookie: a cookie goes to every port of 127.0.0.1. */
const KEY = 'windlass.key'

interface Options {
  body?: unknown; accept?: string; signal?: AbortSignal
  /** A document, instead of a body in JSON. */
  document?: string
  /** The text that is to be replaced; null: there must be none. */
  tag?: string | null
}

async function request(method: string, path: string, options: Options = {}): Promise<Response> {
  const { body, accept = 'application/json', signal, document: yaml, tag } = options
  const key = stored.get(KEY)
  const headers: Record<string, string> = { Accept: accept }
  if (key !== null) headers['Windlass-Key'] = key
  if (method !== 'GET') headers['Content-Type'] = yaml === undefined ? 'application/json' : 'application/yaml'
  if (tag === null) headers['If-None-Match'] = '*'
  else if (tag !== undefined) headers['If-Match'] = tag
  let response: Response
  try {
    response = await fetch(apiUrl(path), { method, headers, signal, body: yaml ?? (body === undefined ? undefined : JSON.stringify(body)) })
  } catch {
    throw new Problem(0, 'NoConnection', '')
  }
  if (response.ok) return response
  if (response.status === 401) {
    const now = stored.get(KEY)
    // A new session has begun meanwhile, maybe in another tab.
    if (now !== null && now !== key) return request(method, path, options)
    stored.remove(KEY)
    if (path !== 'session') onSignedOut.call()
  }
  const problem = await response.json().catch(() => ({}))
  const detail = problem.detail ?? `${response.status} ${problem.title ?? response.statusText}`
  throw Object.assign(
    new Problem(response.status, problem.code ?? '', detail, problem.hint ?? null, Number(response.headers.get('Retry-After') ?? 0)),
    { complaints: problem.complaints ?? [] },
  )
}

const get = async <T>(path: string): Promise<T> => (await request('GET', path)).json()
const text = async (path: string): Promise<string> => (await request('GET', path, { accept: 'text/plain' })).text()
const post = async <T>(path: string, body: unknown): Promise<T> => (await request('POST', path, { body })).json()
const part = encodeURIComponent

function query(values: Record<string, string | number | null | undefined>): string {
  const given = Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== '')
  return given.length ? `?${new URLSearchParams(given.map(([key, value]) => [key, String(value)]))}` : ''
}

export const api = {
  async signIn(by: Credentials): Promise<Session> {
    const { key, ...session } = await post<Session & { key: string }>('sessions', typeof by === 'string' ? { secret: by } : by)
    stored.set(KEY, key)
    return session
  },
  session: () => get<Session>('session'),
  signOut: () => request('DELETE', 'session').finally(() => stored.remove(KEY)),
  sessions: () => get<Page<OpenSession>>('sessions'),
  endSession: (id: string) => request('DELETE', `sessions/${part(id)}`),
  changePassword: (password: string, new_password: string) => request('POST', 'session/password', { body: { password, new_password } }),
  deployments: () => get<Page<Deployment>>('deployments'),
  deployment: (name: string) => get<Deployment>(`deployments/${part(name)}`),
  async document(name: string): Promise<DocumentText> {
    const response = await request('GET', `deployments/${part(name)}/document`, { accept: 'text/plain' })
    return { text: await response.text(), tag: response.headers.get('ETag') ?? '' }
  },
  /** Writes a document in the place of the one with this tag; null: there must be none. Returns its own tag. */
  async putDocument(name: string, text: string, tag: string | null): Promise<string> {
    const response = await request('PUT', `deployments/${part(name)}/document`, { document: text, tag })
    return response.headers.get('ETag') ?? ''
  },
  deleteDocument: (name: string, tag: string) => request('DELETE', `deployments/${part(name)}/document`, { tag }),
  check: async (text: string, deployment: string): Promise<Checked> =>
    (await request('POST', `check${query({ deployment })}`, { document: text })).json(),
  allowed: () => get<Allowed>('allowed'),
  credentials: (name: string) => get<Page<Credential> & { writable: boolean }>(`deployments/${part(name)}/credentials`),
  putCredential: async (name: string, credential: string, kind: CredentialKind, value: string): Promise<Credential> =>
    (await request('PUT', `deployments/${part(name)}/credentials/${part(credential)}`, { body: { kind, value } })).json(),
  hostKeys: async (name: string, hosts: { name: string; address: string; port: number | null }[]) =>
    (await post<Page<HostKey>>(`deployments/${part(name)}/host-keys`, { hosts })).items,
  status: (name: string) => get<StatusAnswer>(`deployments/${part(name)}/status`),
  backups: async (name: string) => (await get<Page<Backup>>(`deployments/${part(name)}/backups`)).items,
  start: (name: string, command: Command) => post<Run>(`deployments/${part(name)}/runs`, command),
  plan: (run: string) => get<Plan>(`plans/${part(run)}`),
  runs: (options: { deployment?: string; limit?: number; after?: string | null }) => get<Page<Run>>(`runs${query(options)}`),
  run: (id: string) => get<Run>(`runs/${part(id)}`),
  tasks: (id: string) => get<Snapshot>(`runs/${part(id)}/tasks`),
  events: (id: string, options: { after?: string | null; host?: string; task?: number }) =>
    get<Page<RunEvent>>(`runs/${part(id)}/events${query(options)}`),
  /** The events after one, as they come: an answer with server-sent events. */
  eventStream: (id: string, after: number, signal: AbortSignal) =>
    request('GET', `runs/${part(id)}/events${query({ after })}`, { accept: 'text/event-stream', signal }),
  log: (id: string) => text(`runs/${part(id)}/log`),
  logFile: async (id: string) => (await request('GET', `runs/${part(id)}/log`, { accept: 'text/plain' })).blob(),
  stop: (id: string) => request('POST', `runs/${part(id)}/stop`, { body: {} }),
  tokens: () => get<Page<Token>>('tokens'),
  createToken: (token: { name: string; rights: Rights; days: number }) => post<Token & { token: string }>('tokens', token),
  revokeToken: (name: string) => request('DELETE', `tokens/${part(name)}`),
  audit: (after?: string | null) => get<Page<AuditEntry>>(`audit${query({ after })}`),
}
