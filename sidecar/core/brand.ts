declare const brand: unique symbol

/**
 * A string with one meaning, which only one function can create. The compiler refuses any other string in its place, so
 * client text never passes as a checked value.
 */
export type Brand<Name extends string> = string & { readonly [brand]: Name }
