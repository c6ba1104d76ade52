import { withPgClientFromPgService } from "@dataplan/pg";

type PgService = GraphileConfig.PgServiceConfiguration;

export function pgServiceOf({ pgServices }: GraphileConfig.ResolvedPreset, serviceName: string): PgService {
  return pgServices!.find(({ name }) => name === serviceName)!;
}

/** The rows of a statement that a schema build runs as the introspecting role. */
export async function queryWhileGathering<Row>(
  pgService: PgService,
  text: string,
  values: unknown[] = [],
): Promise<readonly Row[]> {
  const settings = pgService.pgSettingsForIntrospection ?? null;
  const { rows } = await withPgClientFromPgService(pgService, settings, (client) =>
    client.query<Row>({ text, values }),
  );
  return rows;
}
