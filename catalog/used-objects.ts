/** The columns of a table or view that a request uses, by the kind of use. */
type UsedRelation = {
  readonly select: readonly string[];
  readonly insert: readonly string[];
  readonly update: readonly string[];
  readonly deletes: boolean;
};

/** The objects that a request names, by their qualified names. Those within views, functions and policies are not included. */
export type UsedObjects = {
  readonly relations: Readonly<Record<string, UsedRelation>>;
  /** The functions with the names of the arguments that are passed. */
  readonly functions: Readonly<Record<string, readonly string[]>>;
};
