import { useState } from "preact/hooks";
import { sessionState, viewedCaller } from "../api/session.ts";
import { useLoaded } from "../api/use-loaded.ts";
import { ActionDialog } from "../components/action-dialog.ts";
import { Button } from "../components/button.ts";
import { Checkbox, TextField } from "../components/field.ts";
import { Notice } from "../components/notice.ts";
import { Empty, Loading, PageHeader } from "../components/page.ts";
import { PlainTable } from "../components/plain-table.ts";
import { html } from "../html.ts";
import { pathTo, useSegments } from "../router.ts";
import { useStore } from "../store.ts";
import { formatBytes, formatTime } from "../texts/format.ts";
import { texts } from "../texts.ts";
import { createBucket, deleteBucket, listBuckets, type StoredBucket } from "./files-api.ts";
import { FolderView } from "./folder-view.ts";

/** `/studio/files`, and `/studio/files/<bucket>/<folder>/…`. */
export function FilesPage() {
  const state = useStore(sessionState);
  const caller = state.status === "signed-in" ? viewedCaller(state) : "";
  const { value, error, isLoading, reload } = useLoaded((signal) => listBuckets(signal), [caller]);
  const [, id, ...folders] = useSegments();
  const bucket = value?.find((each) => each.id === id);
  const folder = folders.join("/");
  if (bucket) return html`<${FolderView} key=${`${caller}/${id}/${folder}`} bucket=${bucket} folder=${folder} />`;
  return html`
    <${PageHeader} title=${texts.files.title} />
    <div class="page-body stack">
      ${error && html`<${Notice} kind="error" error=${error} onRetry=${reload} />`}
      ${!value && isLoading && html`<${Loading} />`}
      ${value && html`<${BucketList} buckets=${value} onChanged=${reload} />`}
    </div>
  `;
}

type BucketListProps = { readonly buckets: readonly StoredBucket[]; readonly onChanged: () => void };

function BucketList({ buckets, onChanged }: BucketListProps) {
  const [isMaking, setMaking] = useState(false);
  const [deleted, setDeleted] = useState<string | null>(null);
  const { columns, ...labels } = texts.files;
  const rows = buckets.map((bucket) => ({
    key: bucket.id,
    cells: [
      html`<a href=${pathTo("files", bucket.id)}>${bucket.id}</a>`,
      bucket.public ? labels.public : labels.private,
      bucket.file_size_limit === null ? "" : formatBytes(bucket.file_size_limit),
      formatTime(bucket.created_at),
      html`<${Button} size="small" kind="danger" onClick=${() => setDeleted(bucket.id)}>${labels.delete}<//>`,
    ],
  }));
  const remove = async () => {
    await deleteBucket(deleted!);
    onChanged();
  };
  return html`
    <div class="row">
      <a href=${pathTo("schema", "table", "storage", "objects")}>${labels.policies}</a>
      <div class="page-actions">
        <${Button} icon="plus" kind="primary" onClick=${() => setMaking(true)}>${labels.newBucket}<//>
      </div>
    </div>
    ${
      buckets.length === 0
        ? html`<${Empty}>${labels.noBuckets}<//>`
        : html`<${PlainTable} label=${labels.buckets} heads=${[columns.name, columns.access, columns.limit, columns.changed, labels.delete]} rows=${rows} />`
    }
    ${isMaking && html`<${BucketDialog} onCreated=${onChanged} onClose=${() => setMaking(false)} />`}
    ${
      deleted !== null &&
      html`
        <${ActionDialog} title=${labels.deleteBucket(deleted)} action=${labels.delete} isDangerous onAct=${remove} onClose=${() => setDeleted(null)}>
          <p>${labels.deleteBucketHint}</p>
        <//>
      `
    }
  `;
}

type BucketDialogProps = { readonly onCreated: () => void; readonly onClose: () => void };

function BucketDialog({ onCreated, onClose }: BucketDialogProps) {
  const [name, setName] = useState("");
  const [isPublic, setPublic] = useState(false);
  const labels = texts.files;
  const create = async () => {
    await createBucket(name, isPublic);
    onCreated();
  };
  return html`
    <${ActionDialog} title=${labels.newBucket} action=${labels.create} onAct=${create} onClose=${onClose}>
      <${TextField} label=${labels.columns.name} value=${name} onInput=${setName} required />
      <${Checkbox} label=${labels.isPublic} checked=${isPublic} onChange=${setPublic} />
    <//>
  `;
}
