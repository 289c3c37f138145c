import { ABOUT, EVENTS } from '../sidecar/events/catalogue.ts'

const listed = (fields: Readonly<Record<string, string>>) =>
  Object.entries(fields)
    .map(([name, meaning]) => `\`${name}\` (${meaning})`)
    .join(', ')

/** Every event as Markdown, a table for each thing that events are about. */
export function renderEvents(): string {
  return Object.entries(ABOUT)
    .map(([about, common]) => {
      const rows = Object.entries(EVENTS)
        .filter(([, event]) => event.about === about)
        .map(([name, { when, fields }]) => `| \`${name}\` | ${when} | ${listed(fields)} |`)
      const head = `## About a ${about}\n\nAll have ${listed(common)}.\n\n| event | when | beside these |\n| --- | --- | --- |\n`
      return head + rows.join('\n')
    })
    .join('\n\n')
}
