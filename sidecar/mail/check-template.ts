import mustache from 'mustache'
import { filesOf, kinds, type MailKind } from './kinds.ts'

/** What is wrong with a user's template, as "expected …, got …". */
export function checkTemplate(kind: MailKind, file: string, text: string): string[] {
  const names: readonly string[] = kinds[kind].values
  const { needs } = kinds[kind]
  const strangers: readonly string[] = kinds[kind].strangers
  const { subject, html } = filesOf(kind)
  try {
    const tags = tagsOf(mustache.parse(text) as Token[])
    const unknown = tags.filter((tag) => tag.kind === '>' || !names.includes(tag.name))
    const faults = unknown.map(
      (tag) => `expected one of ${names.join(', ')}, got {{${tag.kind === '>' ? '> ' : ''}${tag.name}}}`,
    )
    if (needs !== undefined && file !== subject && !tags.some((tag) => tag.name === needs)) {
      faults.push(`expected {{${needs}}} somewhere in it, got a mail without the ${needs}`)
    }
    const written = tags.filter(({ name }) => file === subject && strangers.includes(name))
    faults.push(...written.map(({ name }) => `expected a subject without {{${name}}}, which strangers write`))
    if (file === html && tags.some((tag) => tag.kind === '&')) {
      faults.push('expected {{…}}, got {{{…}}} or {{&…}}, which would put what strangers wrote into HTML as it is')
    }
    return faults
  } catch (thrown) {
    return [`expected a Mustache template, got: ${(thrown as Error).message}`]
  }
}

/** Kinds of tokens whose second part is not the name of a value: text, comments, new delimiters. */
const NOT_A_NAME = ['text', '!', '=']

/** As mustache.parse gives them: kind, name, where it begins and ends, and the tokens inside a section. */
type Token = [kind: string, name: string, start: number, end: number, inside?: Token[]]

const tagsOf = (tokens: Token[]): { kind: string; name: string }[] =>
  tokens.flatMap(([kind, name, , , inside]) => [
    ...(NOT_A_NAME.includes(kind) ? [] : [{ kind, name }]),
    ...(Array.isArray(inside) ? tagsOf(inside) : []),
  ])
