import type { SettingsOf } from '../../../ddocs/lib/live-settings.ts'

/** What can be set while it runs, by the document `config:global_changes`. What each is for stands in that table. */
export type GlobalChangesSettings = SettingsOf<'global_changes'>
