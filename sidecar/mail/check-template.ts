import mustache from 'mustache'
import type { TemplateFile } from './confirm-texts.ts'
import type { ConfirmValues } from './templates.ts'

const names: Readonly<Record<keyof ConfirmValues, true>> = {
  name: true,
  link: true,
  expires_in: true,
  owner: true,
}

/** What is wrong with a user's template, as "expected …, got …". */
export function checkTemplate(file: TemplateFile, text: string): string[] {
  try {
    const tags = tagsOf(mustache.parse(text) as Token[])
    const unknown = tags.filter((tag) => tag.kind === '>' || !Object.hasOwn(names, tag.name))
    const faults = unknown.map(
      (tag) => `expected one of ${Object.keys(names).join(', ')}, got {{${tag.kind === '>' ? '> ' : ''}${tag.name}}}`,
    )
    if (file !== 'confirm.subject.txt' && !tags.some((tag) => tag.name === 'link')) {
      faults.push('expected {{link}} somewhere in it, got a mail without the link')
    }
    if (file === 'confirm.html' && tags.some((tag) => tag.kind === '&')) {
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
