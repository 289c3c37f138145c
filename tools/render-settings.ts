import type { SettingDescription } from '../sidecar/config.ts'

/** The settings as a table of Markdown. `docs/settings.md` holds it between two comments, under a test. */
export function renderSettings(settings: readonly SettingDescription[]): string {
  return [HEAD, ...settings.map(rowOf)].join('\n')
}

const HEAD = `| setting | flag | default | meaning | also from a file |
| --- | --- | --- | --- | --- |`

function rowOf({ name, flag, argument, default: byDefault, meaning, fromFile }: SettingDescription): string {
  const cells = [`\`${name}\``, `\`${flag} <${argument}>\``, byDefault, meaning, fromFile ? `\`${name}_FILE\`` : '']
  return `| ${cells.map(escapeCell).join(' | ')} |`
}

const escapeCell = (text: string): string => text.replaceAll('|', '\\|')
