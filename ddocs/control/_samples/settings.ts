/** Valid and invalid settings. */
export default [
  { _id: 'config:global_changes' },
  { _id: 'config:global_changes', update_db: false, max_event_delay: 0, max_write_delay: 50, sweep_interval: 5000 },
  { _id: 'config:global_changes', type: 1, update_db: null, max_event_delay: [], max_write_delay: {}, more: 'x' },
  { _id: 'config:constructor', update_db: true },
]
