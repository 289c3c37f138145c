/** What came of the documents that were sent, as plain numbers. */
export interface InboxCounts {
  readonly documents: Record<'taken' | 'repeated' | 'refused' | 'conflict', number>
  /** Requests that have to come again later: too many came, or too many devices wait. */
  readonly turnedAway: Record<'rate' | 'full', number>
}

export const noArrivals = (): InboxCounts => ({
  documents: { taken: 0, repeated: 0, refused: 0, conflict: 0 },
  turnedAway: { rate: 0, full: 0 },
})
