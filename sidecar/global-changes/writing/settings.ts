/** What can be set while it runs, by the document `config:global_changes`. Milliseconds. */
export interface GlobalChangesSettings {
  /** Whether events are gathered and written. */
  readonly update_db: boolean
  /** How long events are gathered before they are handed to the writer. */
  readonly max_event_delay: number
  /** How long the writer gathers them before it writes. */
  readonly max_write_delay: number
  /** Between two looks at all databases. */
  readonly sweep_interval: number
}
