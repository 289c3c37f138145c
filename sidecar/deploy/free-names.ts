/**
 * Which names a bundle takes from outside. periscopic tells, of a tree that has two things spelt for it:
 *
 *   typeof Promise       '' : it asks whether there is such a name, and is safe where there is none
 *   class Foo { … }      (as an expression) function Foo() { class { … } }: the name is known inside, and only there,
 *                        where periscopic takes it for a global (https://github.com/Rich-Harris/periscopic/issues/32).
 *                        esbuild writes one for a class that its own static fields name.
 */
import type { AnyNode, Identifier, Program } from 'acorn'
import { analyze } from 'periscopic'

export interface FreeName {
  readonly name: string
  /** One place where it is used. */
  readonly node: Identifier
  /** Also asked for by `typeof`: perhaps the use is safe behind that, which nobody here can judge. */
  readonly guarded: boolean
}

/** The names that are used and nowhere declared. One that stands under `typeof` and nowhere else is not used. */
export function freeNames(program: Program): FreeName[] {
  const asked = new Set<string>()
  const tree = spell(program, asked) as Parameters<typeof analyze>[0]
  return [...analyze(tree).globals].map(([name, node]) => ({
    name,
    node: node as unknown as Identifier,
    guarded: asked.has(name),
  }))
}

/** A copy of what has to be spelt differently, and of what is around it. `asked` gets the names under `typeof`. */
function spell(value: unknown, asked: Set<string>): unknown {
  if (Array.isArray(value)) return value.map((part) => spell(part, asked))
  if (!isNode(value)) return value
  if (value.type === 'UnaryExpression' && value.operator === 'typeof' && value.argument.type === 'Identifier') {
    asked.add(value.argument.name)
    return EMPTY
  }
  if (value.type === 'Identifier') return value
  const copy = Object.fromEntries(Object.entries(value).map(([key, part]) => [key, spell(part, asked)]))
  if (value.type !== 'ClassExpression' || !value.id) return copy
  const body = { type: 'BlockStatement', body: [{ type: 'ExpressionStatement', expression: { ...copy, id: null } }] }
  return { type: 'FunctionExpression', id: copy.id, params: [], body }
}

const EMPTY = { type: 'Literal', value: '', raw: "''" }

const isNode = (value: unknown): value is AnyNode =>
  typeof value === 'object' && value !== null && 'type' in value && 'start' in value
