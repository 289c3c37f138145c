import { expectedBy, liveSettings, parts, settingsId, type LiveSetting } from '../ddocs/lib/live-settings.ts'

const HEAD = `| key | value | default | meaning |
| --- | --- | --- | --- |`

const rowOf = ([key, setting]: readonly [string, LiveSetting]): string =>
  `| \`${key}\` | ${expectedBy(setting)} | ${JSON.stringify(setting.default)} | ${setting.meaning} |`

/** All live settings as Markdown, a table for each document. */
export const renderLiveSettings = (): string =>
  parts
    .map((part) =>
      [`## \`${settingsId(part)}\``, '', HEAD, ...Object.entries(liveSettings[part]).map(rowOf)].join('\n'),
    )
    .join('\n\n')
