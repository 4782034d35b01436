import { emptyDraft, missingIn, STEPS, type DraftValues, type Step } from './draft'

const STORED = 'windlass.draft'

/** The draft of this tab: it outlives a reload, and has no secret. */
class Draft {
  values = $state<DraftValues>(emptyDraft())

  constructor() {
    try {
      const kept = sessionStorage.getItem(STORED)
      if (kept !== null) this.values = { ...emptyDraft(), ...JSON.parse(kept) }
    } catch {
      // A browser that keeps nothing, or something of an older page.
    }
  }

  keep(values: DraftValues) {
    try {
      sessionStorage.setItem(STORED, JSON.stringify(values))
    } catch {
      // The draft is lost when the page is reloaded.
    }
  }

  discard() {
    this.values = emptyDraft()
    this.keep(this.values)
  }

  /** The first step before this one that is not complete. */
  firstMissing(step: Step): Step | null {
    return STEPS.slice(0, STEPS.indexOf(step)).find((before) => missingIn(before, this.values) !== null) ?? null
  }
}

export const draft = new Draft()
