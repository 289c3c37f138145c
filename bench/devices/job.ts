export interface DevicesJob {
  /** Of CouchDB, with the admin's credentials. */
  readonly url: string
  readonly serverPid: number
  /** Databases, each of which two devices replicate. */
  readonly names: readonly string[]
}
