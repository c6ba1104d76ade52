/** Runs one introspection query. All rows that it returns are part of the content hash. */
export type CatalogQuery = <Row extends object>(
  subject: string,
  text: string,
  values?: readonly unknown[],
) => Promise<Row[]>;
