// Which test files a command runs: `npm test` all but those that take long, `npm run test:all` all, `npm run test:pure` those
// that start no program and no Postgres. A file that is named on the command line runs in any case.
import { existsSync, globSync, readFileSync } from "node:fs";
import { join, matchesGlob, relative } from "node:path";
import { REPOSITORY } from "./repository.ts";
import { importedFile } from "./rooms.ts";
import { SLOW_FILES } from "./slow-files.ts";

export type TestGroup = "default" | "all" | "pure";

type LongTests = {
  /** For the last lines of `npm test`. */
  readonly subject: string;
  readonly files: readonly string[];
  /** Short ones that match, and represent the subject. */
  readonly except?: readonly string[];
};

export const LONG_TESTS: readonly LongTests[] = [
  { subject: "programs of npm run bench", files: ["test/bench/**"] },
  {
    subject: "crashes, kills and failovers",
    files: [
      "test/faults/**",
      "test/**/{crash,kills,faults,failover,realtime-faults,demoted-primary,delivery-order}.test.ts",
      "test/{live/shapes/{await-txid,shape-log-file},postgres/database/replicas}.test.ts",
    ],
    except: ["test/faults/faults-found.test.ts"],
  },
  { subject: "poolers and proxies", files: ["test/routers/**"] },
  {
    subject: "random requests compared with SQL",
    files: ["test/**/*oracle*.test.ts", "test/**/{differential,random-*,explicit-transactions}.test.ts"],
  },
  { subject: "policies of files, for each method", files: ["test/rest-gateway/storage/policy-matrix.test.ts"] },
  { subject: "signed addresses", files: ["test/journeys/signed-addresses.test.ts"] },
  { subject: "recorded requests", files: ["test/recording/**"] },
  { subject: "databases of others", files: ["test/schemas/**"], except: ["test/schemas/odd.test.ts"] },
  {
    subject: "pages in a browser",
    files: [
      "test/studio/{access,accessibility,frame,lost-rows,people,protection,running,schema,schema-forms,sign-in,sql}.test.ts",
      "test/studio/tables/{edit/editing,million-rows,tables}.test.ts",
      "test/journeys/{example,graphiql,pages,reference,supabase-features}.test.ts",
      "test/graphql/server/explorer.test.ts",
      "test/rest-gateway/guide/guide.test.ts",
      "test/rest-gateway/sign-in/account/account-page.test.ts",
      "test/rest-gateway/sign-in/passkey-pages.test.ts",
      "test/rest-gateway/sign-in/oauth/consent-page.test.ts",
    ],
  },
  {
    subject: "commands, several processes, backups and migrations",
    files: [
      "test/{server,service}.test.ts",
      "test/{deploy/{deploy,image},docs/recipes,docs/tutorial}.test.ts",
      "test/service/processes/{compile-cache,drain,shared-state,workers}.test.ts",
      "test/service/processes/{https,nginx}.test.ts",
      "test/service/cli/{accounts,backup,content-service,doctor,init,migrate,project-settings,provider}.test.ts",
      "test/service/cli/{restore-at,test-policies,usage,webhooks,why}.test.ts",
      "test/service/cli/supabase/{shapes,as-a-user}.test.ts",
      "test/jobs/supabase/supabase-jobs.test.ts",
      "test/cluster/archive/{own-objects,scheduled-backup,postgis}.test.ts",
      "test/cluster/embedded/cluster.test.ts",
      "test/cluster/wal-archive/{recovery-moments,wal-archiver}.test.ts",
      "test/migrate/{backfill,column-plan,current,drift,migrate,undo-verdict,upgrade}.test.ts",
    ],
  },
  {
    subject: "load, limits and long waits",
    files: [
      "test/catalog/{catalog-keeper,config-keeper}.test.ts",
      "test/event-loop.test.ts",
      "test/graphql/server/{compiled-limits,events,operation-transaction,run-compiled,schema-keeper,stepwise-build}.test.ts",
      "test/http/load-shedding.test.ts",
      "test/jobs/queue/{cron-times,job-runner,schedules}.test.ts",
      "test/jobs/webhooks/dispatcher.test.ts",
      "test/journeys/{account-addresses,hostile-commands,hostile-schema,large-answers,managed-owner,sign-in,supabase-application,supabase-auth}.test.ts",
      "test/journeys/{realtime-changes,realtime-channels,realtime-resume}.test.ts",
      "test/live/{resume,server}.test.ts",
      "test/operations/admin/{access-routes,migration,running-routes,session-routes}.test.ts",
      "test/postgres/client/server-finder.test.ts",
      "test/postgres/database/{connection-pools,fair-sharing-at-work,result-collectors}.test.ts",
      "test/realtime/{connection,changes/filter-evaluation}.test.ts",
      "test/rest-gateway/functions/attacks.test.ts",
      "test/rest-gateway/functions/bodies.test.ts",
      "test/rest-gateway/functions/thread-pool.test.ts",
      "test/rest-gateway/{idempotency,schema-changes,sign-ups}.test.ts",
      "test/rest-gateway/resource/versions.test.ts",
      "test/rest-gateway/openapi/resource/{document,operations}.test.ts",
      "test/rest-gateway/sign-in/{accounts,api-key-routes,platform-accounts,auth-v1/accounts,auth-v1/providers}.test.ts",
      "test/rest-gateway/table/{bulk,nested-insert-schemas,schema-change,streaming}.test.ts",
      "test/rest-gateway/tasks/{fair-turns,queue,tasks}.test.ts",
      "test/runtime/limits/request-limit.test.ts",
      "test/runtime/memory/heap-size.test.ts",
    ],
  },
  { subject: "whatever takes over five seconds a file", files: SLOW_FILES },
];

/** What a test imports, itself or by a fixture, when it needs more than its own process. */
const OTHER_PROGRAMS = /^(pg|ws|node:(child_process|cluster|http|net)|@supabase\/.*|puppeteer.*)$/;
const FIXTURES_WITH_POSTGRES = new Set(["test/cluster.ts", "test/database.ts", "test/server-binaries.ts"]);
const IMPORT = /^(?:import|export)\s(?!type\b)[^;]*?from\s+"([^"]+)"|^import\s+"([^"]+)"|import\("([^"]+)"\)/gms;

export function testFiles(group: TestGroup): readonly string[] {
  const files = globSync("test/**/*.test.ts", { cwd: REPOSITORY }).sort();
  if (group === "all") return files;
  const short = files.filter((file) => subjectOf(file) === null);
  return group === "default" ? short : short.filter((file) => isPure(file));
}

/** What `npm test` leaves out, by subject. */
export function leftOut(): ReadonlyMap<string, number> {
  const files = Map.groupBy(testFiles("all"), subjectOf);
  return new Map(LONG_TESTS.map(({ subject }) => [subject, files.get(subject)?.length ?? 0]));
}

/** Whether `npm test` leaves it out. */
export function isLong(path: string): boolean {
  return subjectOf(relative(REPOSITORY, path)) !== null;
}

function subjectOf(file: string): string | null {
  const matches = (globs: readonly string[] = []) => globs.some((glob) => matchesGlob(file, glob));
  return LONG_TESTS.find(({ files, except }) => matches(files) && !matches(except))?.subject ?? null;
}

/** Follows the imports of fixtures, not those of the service: a module of the service starts nothing when it is loaded. */
function isPure(file: string, seen = new Set<string>()): boolean {
  if (seen.has(file)) return true;
  seen.add(file);
  const text = readFileSync(join(REPOSITORY, file), "utf8");
  return [...text.matchAll(IMPORT)].every(([, ...names]) => {
    const name = names.find((found) => found !== undefined)!;
    const path = importedFile(file, name);
    if (path === null) return !OTHER_PROGRAMS.test(name);
    if (FIXTURES_WITH_POSTGRES.has(path) || /^(cluster|service)\//.test(path)) return false;
    // It lists the files of this repository.
    if (path === "test/repository.ts" || !path.startsWith("test/")) return true;
    return !path.endsWith(".ts") || !existsSync(join(REPOSITORY, path)) || isPure(path, seen);
  });
}
