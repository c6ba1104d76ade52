import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import type { Cluster } from "../../cluster/embedded/cluster.ts";
import type { Binaries } from "../../cluster/embedded/create-cluster.ts";
import { withClient } from "../../postgres/client/with-client.ts";
import { copyDatabase } from "../copy-database.ts";
import { COMPILE_CACHE_OF_TESTS, run } from "../program.ts";
import { NO_PROJECT } from "../repository.ts";
import { SECRET } from "../secret.ts";
import { startServer } from "../server-binaries.ts";
import { COMPARED_DATABASES, type ComparedService, type DatabaseName, type Settings } from "./compared-databases.ts";

export type SideOptions = {
  /** The folder of the commit. */
  readonly root: string;
  readonly binaries: Binaries;
};

/** A message to `serve-process.ts`; without URLs the service with this id is stopped. */
export type OpenMessage = {
  readonly id: number;
  readonly urls: { readonly url: string; readonly ownerUrl: string } | null;
  readonly settings: Settings;
};
export type OpenedMessage = { readonly id: number; readonly url: string; readonly error: string | null };

/** Row counts that Postgres estimates depend on when statistics are collected. */
const CLUSTER_SETTINGS = { max_connections: "300", fsync: "off", full_page_writes: "off", autovacuum: "off" };
const NAMES = Object.keys(COMPARED_DATABASES) as DatabaseName[];

/** A commit with a Postgres of its own, which has a template of each database, and with a process for its services. */
export class ComparedSide implements AsyncDisposable {
  readonly #options: SideOptions;
  readonly #cluster: Cluster;
  readonly #opened = new AsyncDisposableStack();
  readonly #answers = new Map<number, PromiseWithResolvers<string>>();
  readonly #process: ChildProcess;
  #lastId = 0;

  private constructor(options: SideOptions, cluster: Cluster, dataDir: string) {
    this.#options = options;
    this.#cluster = cluster;
    this.#opened.defer(() => rm(dataDir, { recursive: true, force: true }));
    this.#opened.defer(() => cluster.stop());
    this.#process = fork(join(import.meta.dirname, "serve-process.ts"), [options.root], {
      cwd: options.root,
      env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: COMPILE_CACHE_OF_TESTS, GRAPHILE_ENV: "production" },
    });
    this.#process.on("message", ({ id, url, error }: OpenedMessage) => {
      if (error === null) this.#answers.get(id)!.resolve(url);
      else this.#answers.get(id)!.reject(new Error(error));
    });
    this.#process.on("exit", () => {
      for (const answer of this.#answers.values())
        answer.reject(new Error(`The process of ${options.root} has ended.`));
    });
    this.#opened.defer(() => void this.#process.kill("SIGKILL"));
  }

  static async open(options: SideOptions): Promise<ComparedSide> {
    const dataDir = await mkdtemp(join(tmpdir(), "compared-cluster-"));
    const { binaries } = options;
    const cluster = await startServer({ dataDir, port: null, settings: CLUSTER_SETTINGS, binaries });
    const side = new ComparedSide(options, cluster, dataDir);
    try {
      await side.#makeTemplates();
      return side;
    } catch (error) {
      await side[Symbol.asyncDispose]();
      throw error;
    }
  }

  async openService(name: DatabaseName, settings: Settings): Promise<ComparedService> {
    const id = ++this.#lastId;
    const database = `${name}_${id}`;
    await withClient(this.#cluster.url("postgres", "postgres"), (client) => copyDatabase(client, database, name));
    const owner = new pg.Client({ connectionString: this.#cluster.url("postgres", database) });
    await owner.connect();
    this.#opened.defer(() => owner.end());
    const { rewind, settings: defaults } = COMPARED_DATABASES[name];
    const urls = {
      url: this.#cluster.url("authenticator", database),
      ownerUrl: this.#cluster.url("postgres", database),
    };
    const url = await this.#send({ id, urls, settings: { GRAPHQL_PRELOAD: "off", ...defaults, ...settings } });
    return {
      url,
      rewind: async () => void (rewind && (await owner.query(rewind))),
      close: async () => {
        await this.#send({ id, urls: null, settings: {} });
        await owner.end();
      },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#opened.disposeAsync();
  }

  #send(message: OpenMessage): Promise<string> {
    const answer = Promise.withResolvers<string>();
    this.#answers.set(message.id, answer);
    this.#process.send(message);
    return answer.promise;
  }

  /** The first migration creates the roles of the cluster, which the tables need too. */
  async #makeTemplates(): Promise<void> {
    const { root, binaries } = this.#options;
    for (const name of NAMES) await this.#inDatabase("postgres", `create database ${name}`);
    const environment = {
      DATABASE_URL: this.#cluster.url("authenticator", "content"),
      OWNER_DATABASE_URL: this.#cluster.url("postgres", "content"),
      BASE_SCHEMA: "content",
      MIGRATIONS_DIR: NO_PROJECT,
      JWT_SECRET: SECRET,
    };
    const { child, streams } = run("bin/content-service.js", environment, { args: ["migrate"], root });
    const [code] = await once(child, "close");
    if (code !== 0) throw new Error(`The migrations of ${root} failed:\n${streams.logged}`);
    for (const name of NAMES) await this.#inDatabase(name, await COMPARED_DATABASES[name].sql(binaries.major));
  }

  #inDatabase(database: string, statement: string) {
    return withClient(this.#cluster.url("postgres", database), (client) => client.query(statement));
  }
}
