import { ABOUT, EVENTS } from '../sidecar/events/catalogue.ts'

const listed = (fields: Readonly<Record<string, string>>) =>
  Object.entries(fields)
    .map(([name, meaning]) => `\`${name}\` (${meaning})`)
    .join(', ')

/** Renders every event as Markdown, with a table for each subject. */
export function renderEvents(): string {
  return Object.entries(ABOUT)
    .map(([about, common]) => {
      const rows = Object.entries(EVENTS)
        .filter(([, event]) => event.about === about)
        .map(([name, { when, fields }]) => `| \`${name}\` | ${when} | ${listed(fields)} |`)
      const head = `## About ${/^[aeiou]/.test(about) ? 'an' : 'a'} ${about}\n\nFields of each event: ${listed(common)}.\n\n| event | when | more fields |\n| --- | --- | --- |\n`
      return head + rows.join('\n')
    })
    .join('\n\n')
}
