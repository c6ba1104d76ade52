import type pg from "pg";

/** Keeps the rows of all tables in `public`, and returns a function that restores them. */
export async function keepRows(owner: pg.Client): Promise<() => Promise<void>> {
  const { rows: tables } = await owner.query<{ readonly name: string; readonly columns: string }>(`
    select format('%I.%I', n.nspname, c.relname) as name,
      (select string_agg(format('%I', attname), ', ') from pg_attribute
        where attrelid = c.oid and attnum > 0 and not attisdropped and attgenerated = '') as columns
    from pg_class c join pg_namespace n on n.oid = relnamespace where n.nspname = 'public' and relkind = 'r'`);
  const kept: string[] = [];
  for (const { name } of tables) {
    const { rows } = await owner.query(`select coalesce(jsonb_agg(t), '[]')::text as rows from ${name} as t`);
    kept.push(rows[0].rows);
  }
  return async () => {
    await owner.query("begin");
    await owner.query("set local session_replication_role = replica");
    await owner.query(`truncate ${tables.map(({ name }) => name)}`);
    for (const [index, { name, columns }] of tables.entries()) {
      const insert = `insert into ${name} (${columns}) overriding system value
        select ${columns} from jsonb_populate_recordset(null::${name}, $1::jsonb)`;
      await owner.query(insert, [kept[index]]);
    }
    await owner.query("commit");
  };
}
