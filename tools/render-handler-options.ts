import { readFileSync } from 'node:fs'
import ts from 'typescript'

/** Which of the types of options stands where. */
export const OPTIONS = {
  HandlerOptions: 'sidecar/docstate/types.ts',
  ScheduleOptions: 'sidecar/docstate/runs.ts',
} as const

/** The options of a handler, or of a schedule, as Markdown: what the declaration of their type says of each. */
export function renderHandlerOptions(type: keyof typeof OPTIONS = 'HandlerOptions'): string {
  const text = readFileSync(new URL(`../${OPTIONS[type]}`, import.meta.url), 'utf8')
  const source = ts.createSourceFile(OPTIONS[type], text, ts.ScriptTarget.Latest, true)
  const declared = source.statements.find(
    (one): one is ts.InterfaceDeclaration => ts.isInterfaceDeclaration(one) && one.name.text === type,
  )
  const rows = declared!.members.filter(ts.isPropertySignature).map((option) => {
    const [doc] = ts.getJSDocCommentsAndTags(option).filter(ts.isJSDoc)
    const byDefault = doc?.tags?.find((tag) => tag.tagName.text === 'default')
    const cells = [option.name.getText(), option.type!.getText(), textOf(byDefault?.comment), textOf(doc?.comment)]
    const [name, type, value, meaning] = cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll(/\s+/g, ' '))
    return `| \`${name}\` | \`${type}\` | ${value === '' ? 'none: it is needed' : `\`${value}\``} | ${meaning} |`
  })
  return ['| option | type | default | meaning |', '| --- | --- | --- | --- |', ...rows].join('\n')
}

const textOf = (comment: ts.JSDoc['comment']): string => ts.getTextOfJSDocComment(comment) ?? ''
