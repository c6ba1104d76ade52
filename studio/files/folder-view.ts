import { useRef, useState } from "preact/hooks";
import { useLoaded } from "../api/use-loaded.ts";
import { Button } from "../components/button.ts";
import { Notice } from "../components/notice.ts";
import { Empty, Loading, PageHeader } from "../components/page.ts";
import { PlainTable } from "../components/plain-table.ts";
import { showToast } from "../components/toast.ts";
import { html } from "../html.ts";
import { pathTo } from "../router.ts";
import { formatBytes, formatTime } from "../texts/format.ts";
import { texts } from "../texts.ts";
import { FileDialog } from "./file-dialog.ts";
import { type FolderEntry, listFolder, PAGE_SIZE, type StoredBucket, uploadFile } from "./files-api.ts";

type FolderViewProps = {
  readonly bucket: StoredBucket;
  /** The path without slashes at its ends; "" is the bucket. */
  readonly folder: string;
};

/** The entries of a folder. Files that are dropped on it are uploaded. */
export function FolderView({ bucket, folder }: FolderViewProps) {
  const [limit, setLimit] = useState(PAGE_SIZE);
  const { value, error, isLoading, reload } = useLoaded(
    (signal) => listFolder(bucket.id, folder, limit + 1, signal),
    [limit],
  );
  const [shown, setShown] = useState<FolderEntry | null>(null);
  const input = useRef<HTMLInputElement>(null);
  const labels = texts.files;
  const nameIn = (name: string) => (folder === "" ? name : `${folder}/${name}`);
  const { upload, isBusy, failure } = useUploads(bucket.id, nameIn, reload);
  const drop = (event: DragEvent) => {
    event.preventDefault();
    upload([...(event.dataTransfer?.files ?? [])]);
  };
  const choose = async ({ currentTarget }: { currentTarget: HTMLInputElement }) => {
    await upload([...(currentTarget.files ?? [])]);
    // Clears the input, so that the same file can be chosen again.
    if (input.current) input.current.value = "";
  };
  return html`
    <${PageHeader} title=${bucket.id}>
      <${Button} icon="upload" kind="primary" busy=${isBusy} onClick=${() => input.current?.click()}>${labels.upload}<//>
    <//>
    <div class="page-body stack drop-target" onDragOver=${(event: DragEvent) => event.preventDefault()} onDrop=${drop}>
      <${Breadcrumbs} bucket=${bucket.id} folder=${folder} />
      <input ref=${input} type="file" multiple hidden aria-label=${labels.uploadLabel} onChange=${choose} />
      <p class="quiet">${labels.drop}</p>
      ${failure && html`<${Notice} kind="error" error=${failure} />`}
      ${error && html`<${Notice} kind="error" error=${error} onRetry=${reload} />`}
      ${!value && isLoading && html`<${Loading} />`}
      ${value?.length === 0 && html`<${Empty}>${labels.noFiles}<//>`}
      ${value && value.length > 0 && html`<${EntryTable} bucket=${bucket.id} folder=${folder} entries=${value.slice(0, limit)} onShow=${setShown} />`}
      ${value && value.length > limit && html`<${Button} onClick=${() => setLimit(limit + PAGE_SIZE)}>${labels.more}<//>`}
    </div>
    ${shown && html`<${FileDialog} bucket=${bucket} name=${nameIn(shown.name)} file=${shown} onDeleted=${reload} onClose=${() => setShown(null)} />`}
  `;
}

/** Uploads files one after another, until one is refused. */
function useUploads(bucket: string, nameIn: (name: string) => string, onEnd: () => void) {
  const [failure, setFailure] = useState<Error | null>(null);
  const [isBusy, setBusy] = useState(false);
  const upload = async (files: readonly File[]) => {
    setBusy(true);
    setFailure(null);
    let count = 0;
    try {
      for (const file of files) {
        await uploadFile(bucket, nameIn(file.name), file);
        count++;
      }
    } catch (thrown) {
      setFailure(thrown as Error);
    }
    if (count > 0) showToast({ text: texts.files.uploaded(count) });
    setBusy(false);
    onEnd();
  };
  return { upload, isBusy, failure };
}

function Breadcrumbs({ bucket, folder }: { readonly bucket: string; readonly folder: string }) {
  const segments = folder === "" ? [] : folder.split("/");
  const all = [bucket, ...segments];
  return html`
    <nav class="breadcrumbs" aria-label=${texts.files.title}>
      <a href=${pathTo("files")}>${texts.files.allBuckets}</a>
      ${all.map((name, index) => html`<span key=${index}>/ <a href=${pathTo("files", ...all.slice(0, index + 1))}>${name}</a></span>`)}
    </nav>
  `;
}

type EntryTableProps = {
  readonly bucket: string;
  readonly folder: string;
  readonly entries: readonly FolderEntry[];
  readonly onShow: (entry: FolderEntry) => void;
};

function EntryTable({ bucket, folder, entries, onShow }: EntryTableProps) {
  const { columns, listOf } = texts.files;
  const segments = folder === "" ? [] : folder.split("/");
  const rows = entries.map((entry) => ({
    key: `${entry.id}/${entry.name}`,
    cells: [
      entry.id === null
        ? html`<a href=${pathTo("files", bucket, ...segments, entry.name)}>${entry.name}/</a>`
        : html`<${Button} kind="quiet" size="small" onClick=${() => onShow(entry)}>${entry.name}<//>`,
      entry.metadata?.mimetype ?? "",
      entry.metadata?.size === undefined ? "" : formatBytes(entry.metadata.size),
      entry.updated_at === null ? "" : formatTime(entry.updated_at),
    ],
  }));
  const heads = [columns.name, columns.type, columns.size, columns.changed];
  return html`<${PlainTable} label=${listOf([bucket, ...segments].join("/"))} heads=${heads} rows=${rows} />`;
}
