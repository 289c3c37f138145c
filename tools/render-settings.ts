import type { SettingDescription } from '../sidecar/config.ts'

/**
 * Renders the settings as a Markdown table. A test compares it with the one between two comments in `docs/settings.md`.
 */
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
