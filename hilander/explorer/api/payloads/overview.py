"""Overview of a run: clusters of each level, sizes, scores, settings, state of the review."""

from __future__ import annotations

from typing import Any

from hilander.explorer.api.payloads.paging import round_number
from hilander.explorer.partition.summary import count_sizes
from hilander.explorer.session.explorer import Explorer


def describe_run(explorer: Explorer) -> dict[str, Any]:
    """Describe the run: counts by level, sizes, scores, settings, and the state of the review."""
    run, review = explorer.run, explorer.review
    grouping = explorer.reviewed()
    sizes = grouping.sizes[grouping.alive]
    known = run.items.labels
    return {
        "name": run.name,
        "n_points": run.n_points,
        "n_levels": run.n_levels,
        "n_clusters": len(sizes),
        "early_stop_level": run.hierarchy.early_stop_level,
        "levels": describe_levels(explorer),
        "sizes": count_sizes(sizes),
        "n_singletons": int((sizes == 1).sum()),
        "largest": int(sizes.max()),
        "has_labels": known is not None,
        "n_identities": None if known is None else len(known.names),
        "metrics_pending": known is not None and explorer.metrics is None,
        "has_graph": run.graph is not None,
        "has_images": run.images.has(0),
        "details": run.details,
        "notes": list(run.notes),
        "run_changed": run.stamp() != explorer.opened_stamp,
        "review": {
            "n_actions": len(review.done),
            "n_named": len(review.state.names),
            "n_junk": len(review.state.junk),
            "n_conflicts": len(explorer.carried_conflicts()),
            "can_undo": any(not event.payload.get("carried") for event in review.done),
            "can_redo": bool(review.undone),
            "revision": review.revision,
        },
        "compare_with": list_comparisons(explorer),
    }


def describe_levels(explorer: Explorer) -> list[dict[str, Any]]:
    """Describe each level: clusters, nodes, largest cluster, mean quality, scores if known."""
    found = []
    for level, table in enumerate(explorer.run.nested.tables):
        scores = explorer.metrics[level] if explorer.metrics is not None else None
        found.append(
            {
                "level": level,
                "n_clusters": table.n_clusters,
                "n_nodes": explorer.run.hierarchy.levels[level].n_nodes,
                "largest": int(table.sizes.max()),
                "quality": round_number(table.mean_quality),
                "scores": scores,
            }
        )
    return found


def list_comparisons(explorer: Explorer) -> list[dict[str, str]]:
    """List the partitions that the reviewed clusters can be compared with."""
    choices = []
    if explorer.run.items.labels is not None:
        choices.append({"key": "labels", "name": "true labels"})
    choices += [{"key": f"run:{name}", "name": f"run {name}"} for name in explorer.others]
    choices.append({"key": "level:original", "name": "last level before the review"})
    choices += [
        {"key": f"level:{level}", "name": f"level {level}"}
        for level in range(explorer.run.n_levels - 1)
    ]
    return choices
