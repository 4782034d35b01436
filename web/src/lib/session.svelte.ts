import { api, onSignedOut, Problem, type Credentials, type Right, type Session } from '../api'
import { t } from './i18n.svelte'

class CurrentSession {
  /** undefined: not known yet. */
  session = $state.raw<Session | null | undefined>(undefined)
  problem = $state.raw<Problem | null>(null)

  async start(by: Credentials | null) {
    onSignedOut.call = () => (this.session = null)
    try {
      this.session = by === null ? await api.session() : await api.signIn(by)
      this.problem = null
    } catch (error) {
      this.session = null
      this.problem = error instanceof Problem && error.status !== 401 ? error : null
      // A link that was used twice in this browser: its session may still be good.
      if (typeof by === 'string') this.session = await api.session().catch(() => null)
    }
  }

  async signOut() {
    await api.signOut().catch(() => null)
    this.session = null
    this.problem = null
  }

  /** Why a right is missing; null: it is there. */
  missing(rights: Right[], deployment: string | null): string | null {
    const right = rights.find((right) => !this.may(right, deployment))
    return right ? t('may.needs', { right: t(`right.${right}`) }) : null
  }

  may(right: Right, deployment: string | null = null): boolean {
    const rights = this.session?.rights ?? {}
    const of = (name: string) => rights[name]?.includes(right) ?? false
    return of('*') || (deployment !== null && of(deployment))
  }
}

export const current = new CurrentSession()
