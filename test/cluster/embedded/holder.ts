// Holds a cluster as the service does and writes rows until it is killed: one line per acknowledged row.
import pg from "pg";
import { superviseCluster } from "../../../cluster/embedded/cluster.ts";

const [dataDir = ""] = process.argv.slice(2);
const cluster = await superviseCluster({ dataDir, port: null, tell: () => {} }, (reason) => {
  throw reason;
});

async function connect(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: cluster.url("postgres", "postgres") });
  client.on("error", () => {});
  await client.connect();
  return client;
}

let client = await connect();
await client.query("create table if not exists kept (id bigint generated always as identity primary key)");
console.log("ready");
for (;;) {
  try {
    const { rows } = await client.query<{ id: string }>("insert into kept default values returning id");
    console.log(rows[0]!.id);
  } catch {
    // The server is being started again.
    await new Promise((done) => setTimeout(done, 20));
    client = await connect().catch(() => client);
  }
}
