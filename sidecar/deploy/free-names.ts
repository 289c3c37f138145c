/**
 * Finds the global names that the reachable code of a bundle uses. Universal packages test names first (UMD):
 *
 *     typeof exports === 'object' && typeof module !== 'undefined' ? (module.exports = factory())
 *       : typeof define === 'function' && define.amd ? define(factory)
 *       : ((typeof globalThis !== 'undefined' ? globalThis : self).slug = factory())
 *
 * A name that no engine has makes such a test false. A name that esbuild passes to a package (`exports`, `module`)
 * makes it true. The other branch is unreachable. If only some engines have the name, both branches are checked. Only
 * one of them may use the name.
 */
import type { AnyNode, Identifier, Program, UnaryExpression } from 'acorn'
import isReference from 'is-reference'
import { analyze, type Scope } from 'periscopic'
import { isAvailable, isOnSomeEngines } from './language-names.ts'

/** Names that are used but not declared, each with its first use. */
export function freeNames(program: Program): Map<string, Identifier> {
  const found = new Map<string, Identifier>()
  const tree = new ScopedTree(program)

  /** @param collected names that exist according to earlier tests */
  function visit(node: AnyNode, parent: AnyNode | undefined, outer: Scope, collected: Names): void {
    const scope = tree.scopeOf(node) ?? outer
    const go = (child: AnyNode | null | undefined, names = collected) => child && visit(child, node, scope, names)
    if (node.type === 'Identifier') {
      const { name } = node
      if (!collected.has(name) && !scope.find_owner(name) && isUse(node, parent) && !found.has(name))
        found.set(name, node)
    } else if (node.type === 'ConditionalExpression' || node.type === 'IfStatement') {
      const { value, ifTrue, ifFalse } = judge(tree, node.test, scope)
      go(node.test)
      if (value !== false) go(node.consequent, union(collected, ifTrue))
      if (value !== true) go(node.alternate, union(collected, ifFalse))
    } else if (node.type === 'LogicalExpression') {
      const { value, ifTrue, ifFalse } = node.operator === '??' ? UNKNOWN : judge(tree, node.left, scope)
      const isOr = node.operator === '||'
      go(node.left)
      if (value !== isOr) go(node.right, union(collected, isOr ? ifFalse : ifTrue))
    } else if (node.type === 'BlockStatement' || node.type === 'Program') {
      let names = collected
      let isOver = false
      for (const statement of node.body) {
        if (isOver && statement.type !== 'FunctionDeclaration') continue // function declarations are hoisted
        go(statement, names)
        if (!isExit(statement)) continue
        const { value, ifFalse } = judge(tree, statement.test, scope)
        names = union(names, ifFalse)
        isOver ||= value === true
      }
    } else if (!isTypeof(node)) {
      // A class knows its own name, but periscopic takes that name for a global (its issue 32).
      const names = node.type === 'ClassExpression' && node.id ? union(collected, new Set([node.id.name])) : collected
      for (const child of childrenOf(node)) go(child, names)
    }
  }

  visit(program, undefined, tree.scope, NONE)
  return found
}

type Names = ReadonlySet<string>
const NONE: Names = new Set()
const union = (a: Names, b: Names): Names => (b.size === 0 ? a : new Set([...a, ...b]))

/** Facts about a condition. */
interface Known {
  /** The condition's value; undefined if it can be either. */
  readonly value?: boolean | undefined
  /** Names that exist if the condition is true. */
  readonly ifTrue: Names
  /** Names that exist if the condition is false. */
  readonly ifFalse: Names
}

const UNKNOWN: Known = { ifTrue: NONE, ifFalse: NONE }

/** @param within constants under evaluation, to end recursion: `var x = x || {}` */
function judge(tree: ScopedTree, test: AnyNode, scope: Scope, within: readonly AnyNode[] = []): Known {
  const judged = (part: AnyNode) => judge(tree, part, scope, within)
  if (test.type === 'Literal') return { ...UNKNOWN, value: Boolean(test.value) }
  if (test.type === 'UnaryExpression' && test.operator === '!') return not(judged(test.argument))
  if (test.type === 'BinaryExpression') return judgeTypeof(tree, test, scope)
  if (test.type === 'LogicalExpression' && test.operator !== '??') {
    const [left, right] = [judged(test.left), judged(test.right)]
    return test.operator === '&&' ? and(left, right) : not(and(not(left), not(right)))
  }
  const set = test.type === 'Identifier' ? tree.constantOf(test.name, scope) : undefined
  return set && !within.includes(set.value) ? judge(tree, set.value, set.scope, [...within, set.value]) : UNKNOWN
}

const not = ({ value, ifTrue, ifFalse }: Known): Known => ({
  value: value === undefined ? undefined : !value,
  ifTrue: ifFalse,
  ifFalse: ifTrue,
})

function and(a: Known, b: Known): Known {
  const ifTrue = union(a.ifTrue, b.ifTrue)
  if (a.value === false || b.value === false) return { value: false, ifTrue, ifFalse: NONE }
  if (a.value === true) return { ...b, ifTrue }
  if (b.value === true) return { ...a, ifTrue }
  return { ifTrue, ifFalse: new Set([...a.ifFalse].filter((name) => b.ifFalse.has(name))) }
}

const comparisons: Readonly<Record<string, (a: string, b: string) => boolean>> = {
  '==': (a, b) => a === b,
  '===': (a, b) => a === b,
  '!=': (a, b) => a !== b,
  '!==': (a, b) => a !== b,
  '<': (a, b) => a < b, // typeof x < 'u', as minifiers write it
  '>': (a, b) => a > b,
}

const TYPES = ['undefined', 'object', 'function', 'string', 'number', 'boolean', 'symbol']

/** Judges a test such as `typeof x === 'function'`. */
function judgeTypeof(tree: ScopedTree, test: AnyNode & { type: 'BinaryExpression' }, scope: Scope): Known {
  const { operator, left, right } = test
  const compare = comparisons[operator]
  const typeofSide = isTypeof(left) ? left : right
  const literalSide = typeofSide === left ? right : left
  if (!compare || !isTypeof(typeofSide) || literalSide.type !== 'Literal' || typeof literalSide.value !== 'string')
    return UNKNOWN
  const text = literalSide.value
  const { name } = typeofSide.argument
  const holds = (type: string) => (typeofSide === left ? compare(type, text) : compare(text, type))
  const [first, ...others] = tree.typesOf(name, scope).map(holds)
  const names = new Set([name])
  return {
    value: others.every((other) => other === first) ? first : undefined,
    ifTrue: holds('undefined') ? NONE : names,
    ifFalse: holds('undefined') ? names : NONE,
  }
}

/** A program with the declarations of each scope. */
class ScopedTree {
  readonly scope: Scope
  readonly #scopes: WeakMap<object, Scope>
  /** Value of a variable, by its scope and name; undefined if the variable is set more than once. */
  readonly #values = new Map<Scope, Map<string, { value: AnyNode; scope: Scope } | undefined>>()
  /** Names that esbuild passes to a package: `__commonJS({ 'path'(exports, module) { … } })`. */
  readonly #given = new Map<Scope, Names>()

  constructor(program: Program) {
    const { scope, map } = analyze(program as Parameters<typeof analyze>[0])
    this.scope = scope
    this.#scopes = map
    this.#note(program, scope)
  }

  scopeOf(node: AnyNode): Scope | undefined {
    return this.#scopes.get(node)
  }

  constantOf(name: string, scope: Scope) {
    const owner = scope.find_owner(name)
    return owner ? this.#values.get(owner)?.get(name) : undefined
  }

  /** Possible results of `typeof` for a name. */
  typesOf(name: string, scope: Scope): readonly string[] {
    const owner = scope.find_owner(name)
    if (owner) return this.#given.get(owner)?.has(name) ? ['object'] : TYPES
    return isAvailable(name) || isOnSomeEngines(name) ? TYPES : ['undefined']
  }

  #note(node: AnyNode, outer: Scope): void {
    const scope = this.scopeOf(node) ?? outer
    if (node.type === 'VariableDeclarator' && node.init) {
      for (const name of namesIn(node.id)) this.#set(name, scope, node.id.type === 'Identifier' ? node.init : undefined)
    }
    if (node.type === 'AssignmentExpression' || node.type === 'UpdateExpression' || isLoop(node)) {
      for (const name of namesIn(targetOf(node))) this.#set(name, scope)
    }
    const wrapped = packageIn(node)
    const inner = wrapped && this.scopeOf(wrapped)
    if (inner) this.#given.set(inner, new Set(wrapped.params.flatMap(namesIn)))
    for (const child of childrenOf(node)) this.#note(child, scope)
  }

  #set(name: string, scope: Scope, value?: AnyNode): void {
    const owner = scope.find_owner(name)
    if (!owner) return
    const values = this.#values.get(owner) ?? new Map<string, { value: AnyNode; scope: Scope } | undefined>()
    this.#values.set(owner, values.set(name, value && !values.has(name) ? { value, scope } : undefined))
  }
}

type Function_ = AnyNode & { type: 'FunctionExpression' }

/** The wrapper function of a CommonJS package. */
function packageIn(node: AnyNode): Function_ | undefined {
  if (node.type !== 'CallExpression' || node.callee.type !== 'Identifier') return undefined
  if (!/^__commonJS\d*$/.test(node.callee.name)) return undefined
  const [packages] = node.arguments
  const property = packages?.type === 'ObjectExpression' ? packages.properties[0] : undefined
  return property?.type === 'Property' && property.value.type === 'FunctionExpression' ? property.value : undefined
}

const isLoop = (node: AnyNode) => node.type === 'ForInStatement' || node.type === 'ForOfStatement'

/** Target of an assignment or a loop. */
function targetOf(node: AnyNode): AnyNode | undefined {
  if (node.type === 'UpdateExpression') return node.argument
  return 'left' in node ? node.left : undefined
}

/** Every name in a pattern. */
function namesIn(node: AnyNode | undefined): string[] {
  if (!node) return []
  return node.type === 'Identifier' ? [node.name] : childrenOf(node).flatMap(namesIn)
}

function childrenOf(node: AnyNode): AnyNode[] {
  return Object.values(node).flat().filter(isNode)
}

const isNode = (value: unknown): value is AnyNode =>
  typeof value === 'object' && value !== null && 'type' in value && 'start' in value

const isTypeof = (node: AnyNode): node is UnaryExpression & { argument: Identifier } =>
  node.type === 'UnaryExpression' && node.operator === 'typeof' && node.argument.type === 'Identifier'

const isUse = (node: Identifier, parent: AnyNode | undefined): boolean =>
  parent !== undefined && isReference(node, parent as Parameters<typeof isReference>[1])

/** `if (…) return` and similar: the code below it runs only if the test is false. */
const isExit = (node: AnyNode): node is AnyNode & { type: 'IfStatement' } =>
  node.type === 'IfStatement' && !node.alternate && leaves(node.consequent)

function leaves(node: AnyNode): boolean {
  if (node.type === 'BlockStatement') return node.body.some(leaves)
  return node.type === 'ReturnStatement' || node.type === 'ThrowStatement'
}
