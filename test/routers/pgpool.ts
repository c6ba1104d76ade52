import { once } from "node:events";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../bench/measuring/free-port.ts";
import { chooseAccount, chownTo, spawnAs } from "../../cluster/embedded/processes.ts";
import { until } from "../until.ts";
import type { PostgresSocketAddress, Router } from "./router.ts";

export const PGPOOL = "/usr/sbin/pgpool";

/** Each serves one client at a time. */
const CHILDREN = 90;

/** Starts pgpool with one server, or with a primary and its replicas between which it distributes reads. */
export async function startPgpool(...servers: readonly PostgresSocketAddress[]): Promise<Router> {
  const folder = await mkdtemp(join(tmpdir(), "pgpool-"));
  await chmod(folder, 0o755);
  const account = await chooseAccount();
  await chownTo(account, folder);
  const port = await freePort();
  const settings = {
    backend_clustering_mode: "'streaming_replication'",
    listen_addresses: "'127.0.0.1'",
    port,
    socket_dir: `'${folder}'`,
    pcp_listen_addresses: "''",
    pcp_port: port,
    pcp_socket_dir: `'${folder}'`,
    pid_file_name: `'${folder}/pgpool.pid'`,
    logdir: `'${folder}'`,
    num_init_children: CHILDREN,
    max_pool: 1,
    connection_cache: "off",
    load_balance_mode: "on",
    enable_pool_hba: "off",
    sr_check_user: "'postgres'",
    sr_check_database: "'postgres'",
    ...Object.assign({}, ...servers.map(backendSettings)),
  };
  const text = Object.entries(settings).map(([name, value]) => `${name} = ${value}\n`);
  const files = { "pgpool.conf": text.join(""), "pcp.conf": "", "pool_hba.conf": "", pool_passwd: "" };
  for (const [name, content] of Object.entries(files)) {
    await writeFile(join(folder, name), content);
    await chownTo(account, join(folder, name));
  }
  const paths = [
    "-f",
    join(folder, "pgpool.conf"),
    "-F",
    join(folder, "pcp.conf"),
    "-a",
    join(folder, "pool_hba.conf"),
  ];
  const child = await spawnAs(PGPOOL, ["-n", ...paths], account, servers[0]!.folder);
  let log = "";
  child.stdout!.resume();
  child.stderr!.on("data", (chunk) => (log += chunk));
  await until(() => child.exitCode !== null || log.includes("pgpool-II successfully started"));
  if (child.exitCode !== null) throw new Error(log);
  return {
    port,
    settings: {},
    async close() {
      const ended = once(child, "close");
      child.kill("SIGINT");
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function backendSettings({ folder, port }: PostgresSocketAddress, index: number): Record<string, string> {
  return {
    [`backend_hostname${index}`]: `'${folder}'`,
    [`backend_port${index}`]: port,
    [`backend_weight${index}`]: "1",
    [`backend_data_directory${index}`]: `'${folder}'`,
    [`backend_flag${index}`]: "'DISALLOW_TO_FAILOVER'",
  };
}
