/**
 * Reads YAML, as far as docker-compose.yml goes: mappings, sequences, scalars as text, anchors, aliases, `<<`. Prettier,
 * which lays the file out, has the parser.
 */
import { parsers } from 'prettier/plugins/yaml'

export type Yaml = string | null | Yaml[] | { [key: string]: Yaml }

interface Node {
  readonly type: string
  readonly value?: string
  readonly anchor?: { readonly value: string } | null
  readonly children?: readonly (Node | null)[]
}

export async function parseYaml(text: string): Promise<Yaml> {
  const anchors = new Map<string, Yaml>()

  function valueOf(node: Node | null | undefined): Yaml {
    const value = node ? plainValueOf(node) : null
    if (node?.anchor) anchors.set(node.anchor.value, value)
    return value
  }

  function plainValueOf(node: Node): Yaml {
    const children = node.children ?? []
    switch (node.type) {
      case 'plain':
      case 'quoteSingle':
      case 'quoteDouble':
      case 'blockLiteral':
        return node.value!
      case 'alias':
        return anchors.get(node.value!)!
      case 'sequence':
      case 'flowSequence':
        return children.map((item) => valueOf(item?.children?.[0]))
      case 'mapping':
      case 'flowMapping':
        return children.reduce((whole, item) => addItem(whole, item!), {})
      case 'null':
        return null
      default:
        throw new Error(`YAML of a kind that this reader does not know: ${node.type}`)
    }
  }

  function addItem(whole: { [key: string]: Yaml }, { children }: Node): { [key: string]: Yaml } {
    const [key, value] = children!.map((half) => valueOf(half?.children?.[0]))
    return key === '<<' ? { ...(value as { [key: string]: Yaml }), ...whole } : { ...whole, [key as string]: value! }
  }

  const root = (await parsers.yaml.parse(text, { filepath: 'x.yml' } as never)) as Node
  const [document] = root.children!
  return valueOf(document?.children?.find((part) => part?.type === 'documentBody')?.children?.[0])
}
