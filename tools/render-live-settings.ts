import {
  expectedBy,
  handlerSettings,
  liveSettings,
  parts,
  settingsId,
  type LiveSetting,
} from '../ddocs/lib/live-settings.ts'

const HEAD = `| key | value | default | meaning |
| --- | --- | --- | --- |`

const rowOf = ([key, setting]: readonly [string, LiveSetting]): string =>
  `| \`${key}\` | ${expectedBy(setting)} | ${JSON.stringify(setting.default) ?? 'option of the handler'} | ${setting.meaning} |`

const tableOf = (settings: Readonly<Record<string, LiveSetting>>): string =>
  [HEAD, ...Object.entries(settings).map(rowOf)].join('\n')

/** Renders all live settings as Markdown, with a table for each document. */
export const renderLiveSettings = (): string =>
  parts
    .map((part) => {
      const ofEach = part === 'handlers' ? ['', 'Settings of each handler:', '', tableOf(handlerSettings)] : []
      return [`## \`${settingsId(part)}\``, '', tableOf(liveSettings[part]), ...ofEach].join('\n')
    })
    .join('\n\n')
