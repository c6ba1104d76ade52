import { existsSync } from "node:fs";
import { cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, dirname, extname, join, relative, resolve } from "node:path";
import { commandLine, runCommand, UsageError } from "./command.ts";
import { type ImportedFile, importSupabase } from "./import-supabase.ts";

/** The release's migrations that each template is built on. */
const BASE_SCHEMAS = { blank: "platform", content: "content", supabase: "none" } as const;
type Template = keyof typeof BASE_SCHEMAS;

const TEMPLATES = join(import.meta.dirname, "../templates");
/** The package contains built files, in `dist`. */
const isClone = extname(import.meta.filename) === ".ts";
const PACKAGE_ROOT = join(import.meta.dirname, isClone ? ".." : "../..");
const PACKAGE_NAME = "content-service";

/** The scripts of a project, by the command that each calls. */
const SCRIPTS = {
  start: "start",
  dev: "dev",
  test: "test",
  migrate: "migrate",
  sql: "sql",
  keys: "keys",
  types: "types --output database.types.ts",
  policies: "policies",
  doctor: "doctor",
  backup: "backup",
  restore: "restore",
};

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
};

/** This package as it was installed: the exact version of a registry, a tarball, or the folder of a clone. */
async function findDependency(folder: string): Promise<Dependency> {
  if (isClone) return { specifier: `file:${relative(folder, PACKAGE_ROOT)}`, tarball: null };
  const installation = dirname(dirname(PACKAGE_ROOT));
  const { dependencies } = await readJson(join(installation, "package.json"));
  const specifier = dependencies?.[PACKAGE_NAME] ?? "";
  if (/^(https?|git\+?\w*|github):/.test(specifier)) return { specifier, tarball: null };
  const path = specifier.startsWith("file:") ? resolve(installation, specifier.slice("file:".length)) : null;
  if (path?.endsWith(".tgz") && existsSync(path)) return { specifier: `file:${basename(path)}`, tarball: path };
  const { version } = await readJson(join(PACKAGE_ROOT, "package.json"));
  return { specifier: version!, tarball: null };
}

type PackageJson = { readonly version?: string; readonly dependencies?: Readonly<Record<string, string>> };

async function readJson(file: string): Promise<PackageJson> {
  return existsSync(file) ? JSON.parse(await readFile(file, "utf8")) : {};
}

function makePackageJson(name: string, template: Template, { specifier }: Dependency): string {
  const settings = {
    BASE_SCHEMA: BASE_SCHEMAS[template],
    MIGRATIONS_DIR: "db/migrations",
    ...(template === "supabase" ? { PGRST_DB_EXTRA_SEARCH_PATH: "public,extensions" } : {}),
  };
  const description = {
    name,
    version: "0.1.0",
    private: true,
    type: "module",
    scripts: Object.fromEntries(Object.entries(SCRIPTS).map(([script, args]) => [script, `${PACKAGE_NAME} ${args}`])),
    [PACKAGE_NAME]: settings,
    dependencies: { [PACKAGE_NAME]: specifier },
  };
  return `${JSON.stringify(description, null, 2)}\n`;
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

type Project = {
  readonly files: readonly ImportedFile[];
  readonly tarball: string | null;
  readonly changes: readonly string[];
};

async function makeProject(folder: string, name: string, template: Template, from: string): Promise<Project> {
  const dependency = await findDependency(folder);
  const files = [...(await readTemplate("every-template", name)), ...(await readTemplate(template, name))];
  const base = files.find(({ path }) => path === "base.sql");
  const imported = base ? await importSupabase(from, base.text) : { files: [], changes: [] };
  return {
    files: [
      { path: "package.json", text: makePackageJson(name, template, dependency) },
      ...files.filter((file) => file !== base),
      ...imported.files,
    ],
    tarball: dependency.tarball,
    changes: imported.changes,
  };
}

/** Overwrites nothing, unless `force` is set; then it replaces files, and does not write through symbolic links. */
async function writeProject(folder: string, { files, tarball }: Project, force: boolean): Promise<void> {
  const conflicts = files.filter(({ path }) => existsSync(join(folder, path))).map(({ path }) => path);
  if (conflicts.length > 0 && !force) {
    throw new Error(
      `Nothing was written, because ${folder} has these files already: ${conflicts.join(", ")}.\n` +
        "Name another folder, or overwrite them with --force.",
    );
  }
  for (const { path, text } of files) {
    const file = join(folder, path);
    await mkdir(dirname(file), { recursive: true });
    if (force) await rm(file, { force: true });
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
  --template   blank (default): roles and helpers for policies, and a first table to change
               content: the example application, with users and sign-in
               supabase: the migrations and the seed of a Supabase project
  --from       the Supabase project's folder, which contains supabase/migrations (default: FOLDER)
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
    const enter = args[0] === undefined ? "" : `  cd ${args[0]}\n`;
    console.log(
      `\n${enter}  npm install\n  npm run dev\n\nThen open http://127.0.0.1:3000. README.md describes the next steps.`,
    );
  },
});
