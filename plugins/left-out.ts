/** An object of the database of which the GraphQL schema has nothing although callers may use it. */
export type LeftOut = {
  /** `function public.search(text, text)` */
  readonly object: string;
  /** A clause: "it takes VARIADIC arguments". */
  readonly reason: string;
  /** SQL that changes it. */
  readonly fix: string;
  /** The schema cannot be built with it; false where a documented rule leaves it out. */
  readonly isFault: boolean;
};
