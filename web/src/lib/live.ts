/** Follows a run: applies the events after a snapshot, through lost connections. */

import { api, Problem, type Run, type RunEvent, type Snapshot } from '../api'
import { RunModel } from './runModel'

export type Connection = 'live' | 'retrying' | 'ended'

/** The page is updated at most this often. */
const UPDATE_MS = 250
const MAX_RETRY_MS = 30_000

export class Follower {
  #source: EventSource | null = null
  #update: ReturnType<typeof setTimeout> | undefined
  #retry: ReturnType<typeof setTimeout> | undefined
  #retryMs = 1000
  #closed = false

  constructor(
    private model: RunModel,
    private readonly changed: (model: RunModel) => void,
    private readonly connection: (state: Connection) => void,
  ) {
    // A browser allows few connections to an origin: a page that nobody sees keeps none.
    document.addEventListener('visibilitychange', this.#visibility)
    if (model.run.running) this.#open()
    else connection('ended')
  }

  close() {
    this.#closed = true
    document.removeEventListener('visibilitychange', this.#visibility)
    this.#disconnect()
    clearTimeout(this.#update)
  }

  #visibility = () => {
    if (document.hidden) this.#disconnect()
    else if (!this.#source && this.model.run.running) this.#open()
  }

  #disconnect() {
    clearTimeout(this.#retry)
    this.#source?.close()
    this.#source = null
  }

  #open() {
    this.#disconnect()
    if (this.#closed || document.hidden) return
    const source = new EventSource(api.eventsUrl(this.model.run.id, this.model.sequence))
    this.#source = source
    source.onopen = () => {
      this.#retryMs = 1000
      this.connection('live')
    }
    source.onmessage = (message) => {
      const applied = this.model.apply(JSON.parse(message.data) as RunEvent)
      if (applied === 'gap') void this.#reload()
      else if (applied === 'applied') this.#schedule()
    }
    source.addEventListener('end', (message) => {
      this.model.run = JSON.parse((message as MessageEvent<string>).data) as Run
      this.#disconnect()
      this.connection('ended')
      this.#schedule()
    })
    source.onerror = () => {
      this.connection('retrying')
      // The browser retries by itself after a lost connection, but not after an error answer.
      if (source.readyState === EventSource.CLOSED) this.#later(() => this.#reload())
    }
  }

  #later(action: () => unknown) {
    this.#disconnect()
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
      if (error instanceof Problem && [401, 404].includes(error.status)) return
      this.#later(() => this.#reload())
      return
    }
    if (this.#closed) return
    this.model = new RunModel(snapshot)
    this.#schedule()
    if (this.model.run.running) this.#open()
    else this.connection('ended')
  }

  #schedule() {
    this.#update ??= setTimeout(() => {
      this.#update = undefined
      this.changed(this.model)
    }, UPDATE_MS)
  }
}
