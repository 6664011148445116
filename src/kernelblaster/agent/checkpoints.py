"""The SQLite checkpointer, kept small: only what a resume needs survives.

A resume reads the latest checkpoint of a namespace and the writes that belong to it. The root graph's namespace is
empty; each rollout has its own, named after the root's task. When the root moves on, its rollouts have ended and
their namespaces are dropped.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from kernelblaster.agent.state import CHECKPOINTED

_ROOT = ""


class PruningSaver(AsyncSqliteSaver):
    """Drops, with every checkpoint it stores, those that it replaces."""

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint, then prune its namespace."""
        stored = await super().aput(config, checkpoint, metadata, new_versions)
        where = stored["configurable"]
        await self._prune(str(where["thread_id"]), where["checkpoint_ns"], where["checkpoint_id"])
        return stored

    async def _prune(self, thread: str, namespace: str, latest: str) -> None:
        """Delete the checkpoints of `namespace` older than `latest`, with their writes.

        In the root namespace the rollouts' namespaces go as well. Ids are time-ordered and compare as text.
        """
        older = (thread, namespace, latest)
        async with self.lock:
            for table in ("checkpoints", "writes"):
                await self.conn.execute(
                    f"DELETE FROM {table} WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id < ?", older
                )
                if namespace == _ROOT:
                    await self.conn.execute(
                        f"DELETE FROM {table} WHERE thread_id = ? AND checkpoint_ns <> ?", (thread, _ROOT)
                    )
            await self.conn.commit()


@asynccontextmanager
async def open_checkpoints(path: Path) -> AsyncIterator[PruningSaver]:
    """Open, or create, the checkpoint file of one problem."""
    path.parent.mkdir(parents=True, exist_ok=True)
    serializer = JsonPlusSerializer(allowed_msgpack_modules=CHECKPOINTED)
    async with aiosqlite.connect(path) as connection:
        # In WAL mode NORMAL survives the death of the process; only a power cut can undo the last commits.
        await connection.execute("PRAGMA synchronous = NORMAL")
        yield PruningSaver(connection, serde=serializer)
