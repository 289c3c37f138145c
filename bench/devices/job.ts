export interface DevicesJob {
  /** The URL of CouchDB, with the admin's credentials. */
  readonly url: string
  readonly serverPid: number
  /** The databases, each of which two devices replicate. */
  readonly names: readonly string[]
}
