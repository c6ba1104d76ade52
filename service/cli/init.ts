import { existsSync } from "node:fs";
import { cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, dirname, extname, join, relative, resolve } from "node:path";
import { commandLine, PACKAGE_NAME } from "#runtime";
import { runCommand, UsageError } from "./command/command.ts";
import { type ImportedFile, importSupabase, parseApis } from "./supabase/import-project.ts";

/** The release's migrations that each template is built on. */
const BASE_SCHEMAS = { blank: "platform", content: "content", supabase: "platform" } as const;
type Template = keyof typeof BASE_SCHEMAS;

const TEMPLATES = join(import.meta.dirname, "../../templates");
/** The package contains built files, in `dist`. */
const isClone = extname(import.meta.filename) === ".ts";
const PACKAGE_ROOT = join(import.meta.dirname, isClone ? "../.." : "../../..");

/** The scripts of a project, by the command that each calls. */
const SCRIPTS = {
  start: "start",
  dev: "dev",
  test: "test",
  migrate: "migrate",
  branch: "branch",
  sql: "sql",
  psql: "psql",
  "database-url": "database-url",
  keys: "keys",
  user: "user",
  provider: "provider",
  webhooks: "webhooks",
  config: "config",
  types: "types --output database.types.ts",
  policies: "policies",
  why: "why",
  doctor: "doctor",
  mcp: "mcp",
  backup: "backup",
  restore: "restore",
  storage: "storage",
  upgrade: "upgrade",
};

/** Text of the test script that `npm init` writes. */
const NO_TESTS = "no test specified";

/** Names of npm packages without a scope. */
const VALID_NAME = /^[a-z0-9][a-z0-9._-]{0,213}$/;
const RESERVED_NAMES: readonly string[] = [PACKAGE_NAME, "node_modules", "favicon.ico"];

function projectName(folder: string, name: unknown): string {
  if (name === undefined) {
    const derived = basename(folder)
      .toLowerCase()
      .replace(/[^a-z0-9._-]+/g, "-")
      .replace(/^[-._]+/, "")
      .slice(0, 214);
    return VALID_NAME.test(derived) && !RESERVED_NAMES.includes(derived) ? derived : "my-project";
  }
  if (!VALID_NAME.test(String(name)) || RESERVED_NAMES.includes(String(name))) {
    throw new UsageError(`--name must be a package name of a-z, 0-9, ".", "_" and "-", other than ${PACKAGE_NAME}.`);
  }
  return String(name);
}

type Dependency = {
  readonly specifier: string;
  /** The tarball that this package was installed from, to be kept in the project. */
  readonly tarball: string | null;
  /** The dependencies whose install scripts npm may run. */
  readonly allowScripts: Readonly<Record<string, boolean>>;
};

/** This package as it was installed: the exact version of a registry, a tarball, or the folder of a clone. */
async function findDependency(folder: string): Promise<Dependency> {
  const { version, allowScripts = {} } = await readJson(join(PACKAGE_ROOT, "package.json"));
  if (isClone) return { specifier: `file:${relative(folder, PACKAGE_ROOT)}`, tarball: null, allowScripts };
  const installation = dirname(dirname(PACKAGE_ROOT));
  const { dependencies } = await readJson(join(installation, "package.json"));
  const specifier = dependencies?.[PACKAGE_NAME] ?? "";
  if (/^(https?|git\+?\w*|github):/.test(specifier)) return { specifier, tarball: null, allowScripts };
  const path = specifier.startsWith("file:") ? resolve(installation, specifier.slice("file:".length)) : null;
  if (path?.endsWith(".tgz") && existsSync(path))
    return { specifier: `file:${basename(path)}`, tarball: path, allowScripts };
  return { specifier: version!, tarball: null, allowScripts };
}

type PackageJson = {
  readonly version?: string;
  readonly scripts?: Readonly<Record<string, string>>;
  readonly [PACKAGE_NAME]?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly allowScripts?: Readonly<Record<string, boolean>>;
};

async function readJson(file: string): Promise<PackageJson> {
  return existsSync(file) ? JSON.parse(await readFile(file, "utf8")) : {};
}

type PackageOptions = {
  readonly name: string;
  readonly template: Template;
  readonly settings: Readonly<Record<string, string>>;
};

function makePackageJson(options: PackageOptions, { specifier, allowScripts }: Dependency) {
  const { name, template } = options;
  const settings = {
    BASE_SCHEMA: BASE_SCHEMAS[template],
    MIGRATIONS_DIR: "db/migrations",
    ...(template === "supabase" ? { PGRST_DB_EXTRA_SEARCH_PATH: "public,extensions" } : {}),
    ...options.settings,
  };
  return {
    name,
    version: "0.1.0",
    private: true,
    type: "module",
    scripts: Object.fromEntries(Object.entries(SCRIPTS).map(([script, args]) => [script, `${PACKAGE_NAME} ${args}`])),
    [PACKAGE_NAME]: settings,
    dependencies: { [PACKAGE_NAME]: specifier },
    allowScripts,
  };
}

/** Completes the package.json that `npm install content-service` has written; null if it does not depend on this package. */
function completePackageJson(
  existing: PackageJson,
  ours: ReturnType<typeof makePackageJson>,
  { tarball, specifier }: Dependency,
): object | null {
  if (existing.dependencies?.[PACKAGE_NAME] === undefined) return null;
  const scripts = Object.entries(existing.scripts ?? {}).filter(([, script]) => !script.includes(NO_TESTS));
  return {
    ...ours,
    ...existing,
    scripts: { ...ours.scripts, ...Object.fromEntries(scripts) },
    [PACKAGE_NAME]: { ...ours[PACKAGE_NAME], ...existing[PACKAGE_NAME] },
    ...(tarball !== null && { dependencies: { ...existing.dependencies, [PACKAGE_NAME]: specifier } }),
  };
}

/** The lockfile that npm has written, with the tarball in the project; null if it names none elsewhere. */
async function completeLockfile(
  folder: string,
  existing: PackageJson,
  { tarball, specifier }: Dependency,
): Promise<ImportedFile | null> {
  const path = "package-lock.json";
  const installed = existing.dependencies?.[PACKAGE_NAME];
  if (tarball === null || installed === undefined || !existsSync(join(folder, path))) return null;
  const text = await readFile(join(folder, path), "utf8");
  const completed = text.replaceAll(JSON.stringify(installed), JSON.stringify(specifier));
  return completed === text ? null : { path, text: completed };
}

/** The files of a template folder. A leading `_` stands for the dot that npm would leave out of the package. */
async function readTemplate(template: string, name: string): Promise<ImportedFile[]> {
  const folder = join(TEMPLATES, template);
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)));
  return Promise.all(
    paths.map(async (path) => ({
      path: path.replace(/(^|\/)_/g, "$1."),
      text: (await readFile(join(folder, path), "utf8")).replaceAll("{{name}}", name),
    })),
  );
}

/** Files of the template that the import writes into migrations. */
const IMPORT_SOURCES = /^(sql|extensions)\//;

function importFrom(projectFolder: string) {
  const apis = parseApis(process.env.SUPABASE_APIS);
  return importSupabase({ projectFolder, templateFolder: join(TEMPLATES, "supabase"), apis });
}

type Project = {
  readonly files: readonly ImportedFile[];
  /** The files that `npm install` has written, completed. */
  readonly completed: readonly ImportedFile[];
  readonly tarball: string | null;
  readonly changes: readonly string[];
};

async function makeProject(folder: string, name: string, template: Template, from: string): Promise<Project> {
  const dependency = await findDependency(folder);
  const files = [...(await readTemplate("every-template", name)), ...(await readTemplate(template, name))];
  const imported = template === "supabase" ? await importFrom(from) : { files: [], changes: [], settings: {} };
  const packageJson = makePackageJson({ name, template, settings: imported.settings }, dependency);
  const existing = await readJson(join(folder, "package.json"));
  const completed = completePackageJson(existing, packageJson, dependency);
  const lockfile = await completeLockfile(folder, existing, dependency);
  const kept = { ...(completed ? existing[PACKAGE_NAME] : {}), ...process.env };
  const written = { path: "package.json", text: `${JSON.stringify(completed ?? packageJson, null, 2)}\n` };
  const own = [...files.filter(({ path }) => !IMPORT_SOURCES.test(path)), ...imported.files];
  return {
    files: completed ? own : [...own, written],
    completed: [...(completed ? [written] : []), ...(lockfile ? [lockfile] : [])],
    tarball: dependency.tarball,
    changes: [...imported.changes, ...findOverridden(imported.settings, kept)],
  };
}

/** Lists the settings of the imported project for which package.json or the environment already has another value. */
function findOverridden(
  imported: Readonly<Record<string, string>>,
  kept: Readonly<Record<string, string | undefined>>,
): string[] {
  return Object.entries(imported)
    .filter(([setting, value]) => kept[setting] !== undefined && kept[setting] !== value)
    .map(([setting, value]) => `config.toml asks for ${setting}=${value}, but it is set to ${kept[setting]} already`);
}

/** Overwrites nothing, unless `force` is set; then it replaces files, and does not write through symbolic links. */
async function writeProject(folder: string, project: Project, force: boolean): Promise<void> {
  const { completed, tarball } = project;
  const files = [...project.files, ...completed];
  const replaces = (path: string) => force || completed.some((file) => file.path === path);
  const conflicts = files.map(({ path }) => path).filter((path) => !replaces(path) && existsSync(join(folder, path)));
  if (conflicts.length > 0) {
    throw new Error(
      `Nothing was written, because ${folder} has these files already: ${conflicts.join(", ")}.\n` +
        "Name another folder, or overwrite them with --force.",
    );
  }
  for (const { path, text } of files) {
    const file = join(folder, path);
    await mkdir(dirname(file), { recursive: true });
    if (replaces(path)) await rm(file, { force: true });
    await writeFile(file, text, { flag: "wx" });
  }
  if (tarball !== null && dirname(tarball) !== folder) await cp(tarball, join(folder, basename(tarball)));
}

function isTemplate(name: string): name is Template {
  return Object.hasOwn(BASE_SCHEMAS, name);
}

await runCommand({
  usage: `${commandLine("init", "[FOLDER] [--template blank|content|supabase] [--from FOLDER] [--name NAME] [--force]")}
  Creates a project in FOLDER (default: the working directory): package.json, db/migrations, a first policy test, and a CI workflow.
  The package.json of "npm install ${PACKAGE_NAME}" is completed.
  --template   blank (default): roles and helpers for policies, and a first table to change
               content: the example application, with users and sign-in
               supabase: the migrations and the seed of a Supabase project
  --from       the Supabase project's folder, which contains the folder supabase (default: FOLDER)
  --name       the name in package.json (default: that of the folder)
  --force      overwrites existing files

Examples:
  ${commandLine("init", "my-app")}
  ${commandLine("init", "my-api --template supabase --from ../my-app")}`,
  options: {
    template: { type: "string" },
    from: { type: "string" },
    name: { type: "string" },
    force: { type: "boolean" },
  },
  async run(_config, args, { template = "blank", from, name, force = false }) {
    if (args.length > 1) throw new UsageError(`Unexpected argument "${args[1]}".`);
    if (!isTemplate(String(template)))
      throw new UsageError(`--template must be one of ${Object.keys(BASE_SCHEMAS).join(", ")}.`);
    if (from !== undefined && template !== "supabase")
      throw new UsageError("--from is only allowed with --template supabase.");
    const folder = resolve(args[0] ?? ".");
    const source = from === undefined ? folder : resolve(String(from));
    const project = await makeProject(folder, projectName(folder, name), String(template) as Template, source);
    await writeProject(folder, project, force === true);
    console.log(`Created a project in ${folder}.`);
    for (const change of project.changes) console.log(`  ${change}`);
    const install = project.completed.length > 0 ? "" : "  npm install\n";
    const enter = args[0] === undefined ? "" : `  cd ${args[0]}\n`;
    console.log(
      `\n${enter}${install}  npm run dev\n\nThen open http://127.0.0.1:3000. README.md describes the next steps.`,
    );
  },
});
