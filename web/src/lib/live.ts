/** Follows a run: applies the events after a snapshot, through lost connections. */

import { api, Problem, type Run, type RunEvent, type Snapshot } from '../api'
import { EventStreamParser, type Message } from './eventStream'
import { RunModel } from './runModel'

export type Connection = 'live' | 'retrying' | 'ended'

/** The page is updated at most this often. */
const UPDATE_MS = 250
const MIN_RETRY_MS = 500
const MAX_RETRY_MS = 30_000

/** The connection ended before the run did. */
class Lost extends Error {}

export class Follower {
  /** Ends the connection. null: there is none. */
  #connected: AbortController | null = null
  #update: ReturnType<typeof setTimeout> | undefined
  #retry: ReturnType<typeof setTimeout> | undefined
  #firstRetryMs = 1000
  #retryMs = this.#firstRetryMs
  #ended = false
  #closed = false

  constructor(
    private model: RunModel,
    private readonly changed: (model: RunModel) => void,
    private readonly connection: (state: Connection) => void,
  ) {
    // A browser allows few connections to an origin: a page that nobody sees keeps none.
    document.addEventListener('visibilitychange', this.#visibility)
    if (model.run.running) void this.#open()
    else this.#end()
  }

  close() {
    this.#closed = true
    document.removeEventListener('visibilitychange', this.#visibility)
    this.#disconnect()
    clearTimeout(this.#update)
  }

  #visibility = () => {
    if (document.hidden) this.#disconnect()
    else if (!this.#connected && !this.#ended) void this.#open()
  }

  #disconnect() {
    clearTimeout(this.#retry)
    this.#connected?.abort()
    this.#connected = null
  }

  #end() {
    this.#ended = true
    this.#disconnect()
    this.connection('ended')
  }

  async #open(): Promise<void> {
    this.#disconnect()
    if (this.#closed || document.hidden) return
    const controller = new AbortController()
    this.#connected = controller
    const isCurrent = () => this.#connected === controller
    try {
      await this.#read(controller.signal, isCurrent)
    } catch (error) {
      if (!isCurrent()) return
      this.#disconnect()
      // The session has ended, or the run is gone.
      if (error instanceof Problem && [401, 404].includes(error.status)) return
      this.connection('retrying')
      // After a lost connection, the next one continues where it was; after anything else, a new snapshot.
      const isLost = error instanceof Lost || (error instanceof Problem && error.status === 0)
      this.#later(() => (isLost ? this.#open() : this.#reload()))
    }
  }

  async #read(signal: AbortSignal, isCurrent: () => boolean): Promise<void> {
    const response = await api.eventStream(this.model.run.id, this.model.sequence, signal)
    if (!isCurrent()) return
    if (!response.headers.get('Content-Type')?.startsWith('text/event-stream')) throw new Error('not a stream of events')
    this.connection('live')
    const parser = new EventStreamParser()
    const reader = response.body!.getReader()
    for (;;) {
      const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }) as const)
      if (!isCurrent()) return
      if (done) throw new Lost()
      const messages = parser.push(value)
      if (parser.retry !== null) this.#firstRetryMs = Math.min(Math.max(parser.retry, MIN_RETRY_MS), MAX_RETRY_MS)
      this.#retryMs = this.#firstRetryMs
      for (const message of messages) {
        this.#take(message)
        if (!isCurrent()) return
      }
    }
  }

  #take({ event, data }: Message) {
    if (event === 'end') {
      this.model.run = JSON.parse(data) as Run
      this.#end()
      this.#schedule()
    } else if (event === 'message') {
      const applied = this.model.apply(JSON.parse(data) as RunEvent)
      if (applied === 'gap') void this.#reload()
      else if (applied === 'applied') this.#schedule()
    }
  }

  #later(action: () => unknown) {
    clearTimeout(this.#retry)
    this.#retry = setTimeout(action, this.#retryMs)
    this.#retryMs = Math.min(this.#retryMs * 2, MAX_RETRY_MS)
  }

  /** Starts again from a new snapshot. */
  async #reload(): Promise<void> {
    this.#disconnect()
    let snapshot: Snapshot
    try {
      snapshot = await api.tasks(this.model.run.id)
    } catch (error) {
      if (this.#closed || (error instanceof Problem && [401, 404].includes(error.status))) return
      this.#later(() => this.#reload())
      return
    }
    if (this.#closed) return
    this.model = new RunModel(snapshot)
    this.#schedule()
    if (this.model.run.running) await this.#open()
    else this.#end()
  }

  #schedule() {
    this.#update ??= setTimeout(() => {
      this.#update = undefined
      this.changed(this.model)
    }, UPDATE_MS)
  }
}
