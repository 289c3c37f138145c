/** A timeout that learns how long requests take. */
export interface AdaptiveTimeout {
  /** Maximum wait for the answer of a request that is sent now, milliseconds. After it, the outcome is unknown. */
  readonly timeoutMs: number
  /** Call when a request is sent, and call the result when it is answered or has failed. */
  sent(): () => void
}
