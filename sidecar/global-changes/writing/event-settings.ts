import type { SettingsOf } from '../../../ddocs/lib/live-settings.ts'

/** Settings in the document `config:global_changes`; they can change at run time. `liveSettings` describes each. */
export type GlobalChangesSettings = SettingsOf<'global_changes'>
