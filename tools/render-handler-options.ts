import { readFileSync } from 'node:fs'
import ts from 'typescript'

/** The file of each type of options. */
export const OPTIONS = {
  HandlerOptions: 'sidecar/docstate/types.ts',
  ScheduleOptions: 'sidecar/docstate/runs.ts',
} as const

/** Renders the options of a handler or schedule as Markdown, from the doc comments of their type. */
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
    return `| \`${name}\` | \`${type}\` | ${value === '' ? 'none: required' : `\`${value}\``} | ${meaning} |`
  })
  return ['| option | type | default | meaning |', '| --- | --- | --- | --- |', ...rows].join('\n')
}

const textOf = (comment: ts.JSDoc['comment']): string => ts.getTextOfJSDocComment(comment) ?? ''
